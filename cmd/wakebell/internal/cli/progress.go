package cli

import (
	"context"
	"sync"
	"time"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
)

// Progress shows on the terminal of stderr how far a command is, until End. What is a
// verb, such as cancel; a total of 0 is unknown, and with -1 only the time is shown.
// Without a terminal it returns nil, which shows nothing.
func (a *App) Progress(what string, total int64) *output.Progress {
	a.progress.Load().End()
	progress := output.NewProgress(a.Stderr, output.NewScreen(a.notes), what, total)
	a.progress.Store(progress)
	return progress
}

// clearProgress makes room for other output.
func (a *App) clearProgress() { a.progress.Load().Clear() }

// Summaryf prints to stderr what a command did, for a person at a terminal. A program
// reads stdout.
func (a *App) Summaryf(format string, args ...any) {
	if output.IsTerminal(a.notes) {
		a.Notef("wakebell: "+format+"\n", args...)
	}
}

// followEvery is the time between two readings of Follow.
const followEvery = 500 * time.Millisecond

// Follow shows on a terminal the progress of a call that does not report it: left
// returns how many things are left. It is called until stop, and its errors are ignored.
func (a *App) Follow(ctx context.Context, what string, left func(context.Context) (int64, error)) (stop func()) {
	return a.FollowDone(ctx, what, func(ctx context.Context) (int64, func(context.Context) (int64, error)) {
		total, _ := left(ctx)
		return total, func(ctx context.Context) (int64, error) {
			n, err := left(ctx)
			return max(total-n, 0), err
		}
	})
}

// Elapsed shows on a terminal for how long a call takes of which no more is known, until
// stop.
func (a *App) Elapsed(ctx context.Context, what string) (stop func()) {
	return a.FollowDone(ctx, what, func(context.Context) (int64, func(context.Context) (int64, error)) {
		return -1, func(context.Context) (int64, error) { return 0, nil }
	})
}

// FollowDone does what Follow does by a count that grows: begin, which is called on a
// terminal only, returns the total, as Progress takes it, and the function that returns
// how much is done.
func (a *App) FollowDone(ctx context.Context, what string, begin func(context.Context) (int64, func(context.Context) (int64, error))) (stop func()) {
	if !output.IsTerminal(a.notes) {
		return func() {}
	}
	total, done := begin(ctx)
	progress := a.Progress(what, total)
	ctx, cancel := context.WithCancel(ctx)
	var ended sync.WaitGroup
	ended.Go(func() {
		tick := time.NewTicker(followEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if n, err := done(ctx); err == nil {
				progress.Set(n)
			}
		}
	})
	return func() {
		cancel()
		ended.Wait()
		progress.End()
	}
}
