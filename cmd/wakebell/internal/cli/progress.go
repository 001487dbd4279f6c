package cli

import (
	"context"
	"sync"
	"time"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
)

// Progress shows on the terminal of stderr how far a command is, until End. What is a
// verb, such as cancel; a total below 1 is unknown. Without a terminal it returns nil,
// which shows nothing.
func (a *App) Progress(what string, total int64) *output.Progress {
	a.progress.End()
	a.progress = output.NewProgress(a.Stderr, output.NewScreen(a.notes), what, total)
	return a.progress
}

// clearProgress makes room for other output.
func (a *App) clearProgress() { a.progress.Clear() }

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
	if !output.IsTerminal(a.notes) {
		return func() {}
	}
	total, _ := left(ctx)
	progress := a.Progress(what, total)
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(followEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if n, err := left(ctx); err == nil {
				progress.Set(max(total-n, 0))
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
		progress.End()
	}
}
