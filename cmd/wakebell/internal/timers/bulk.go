package timers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	// bulkStep is the number of timers that a bulk command changes before it looks for
	// an interrupt.
	bulkStep = 100
	// bulkMost is the largest number of timers that a bulk command selects, which bounds
	// its memory.
	bulkMost = 1_000_000
)

// bulkFlags are the flags of a command that changes the timers of a search.
type bulkFlags struct {
	searchFlags
	dryRun, yes bool
}

func (f *bulkFlags) register(cmd *cobra.Command, yesUsage string) {
	f.searchFlags.register(cmd)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "with --search: list the timers and change nothing")
	cli.YesFlag(cmd, &f.yes, yesUsage)
}

// searches rejects also --dry-run without --search.
func (f *bulkFlags) searches() (bool, error) {
	searches, err := f.searchFlags.searches()
	if err == nil && !searches && f.dryRun {
		err = cli.Usagef("--dry-run: requires --search")
	}
	return searches, err
}

// bulk is a change of all timers of a search.
type bulk struct {
	verb, done string // "cancel", "cancelled"
	topic      string

	operation wakebelltype.AuditOperation
	detail    string // what the audit says beside the selection

	// change changes some timers and prints each. Its context outlasts an interrupt, so
	// that it is known which timers were changed. It returns how many it changed.
	change func(ctx context.Context, ids []string) (int, error)
}

// run selects the timers first and changes them then: a timer that a change moves would
// be found again.
func (b bulk) run(ctx context.Context, a *cli.App, c client, f *bulkFlags) error {
	infos, err := b.collect(ctx, a, c, f)
	if err != nil {
		return err
	}
	if f.dryRun {
		return b.printDryRun(a, overviewOf(ctx, c, b.topic), infos)
	}
	if len(infos) == 0 {
		return cli.NotFoundf("no %s", f.selected(a.Prefix+b.topic))
	}
	err = a.Confirm(f.yes, func() (string, error) {
		return fmt.Sprintf("%s %d %s?", strings.ToUpper(b.verb[:1])+b.verb[1:], len(infos), f.selected(a.Prefix+b.topic)), nil
	})
	if err != nil {
		return err
	}
	began := time.Now()
	done, err := b.apply(ctx, a, infos)
	record(ctx, a, c, wakebelltype.Change{
		Operation: b.operation, Name: b.topic, Count: int64(done), Detail: "timers " + f.words() + b.detail,
	}, err)
	if err != nil {
		return fmt.Errorf("%d of %d timers were %s; run the same command again for the rest: %w", done, len(infos), b.done, err)
	}
	a.Summaryf("%d of %d timers were %s, in %v", done, len(infos), b.done, output.Took(began))
	return nil
}

// apply changes the timers in steps and returns how many it changed.
func (b bulk) apply(ctx context.Context, a *cli.App, infos []wakebell.Info) (done int, err error) {
	progress := a.Progress(b.verb, int64(len(infos)))
	last, stop := outlasting(ctx)
	defer stop()
	for part := range slices.Chunk(infos, bulkStep) {
		if ctx.Err() != nil {
			return done, cli.ErrInterrupted
		}
		ids := make([]string, len(part))
		for i, info := range part {
			ids[i] = info.ID
		}
		n, err := b.change(last, ids)
		done += n
		if err != nil {
			return done, err
		}
		progress.Add(int64(len(part)))
	}
	return done, nil
}

func (b bulk) collect(ctx context.Context, a *cli.App, c wakebell.TimerClient, f *bulkFlags) (infos []wakebell.Info, err error) {
	for info, err := range search(ctx, a, c, b.topic, wakebell.Filter{}, "", &f.searchFlags) {
		if err != nil {
			return nil, err
		}
		if len(infos) == bulkMost {
			a.Notef("wakebell: over %d timers match; run the same command again for the rest\n", bulkMost)
			break
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// printDryRun prints the timers that would be changed.
func (b bulk) printDryRun(a *cli.App, overview func() *wakebelltype.Overview, infos []wakebell.Info) error {
	list := newTimerList(a, overview, 0, false)
	for _, info := range infos {
		if err := list.add(info); err != nil {
			return err
		}
	}
	if err := list.End(); err != nil {
		return err
	}
	a.Notef("wakebell: %d timers would be %s; nothing was changed\n", len(infos), b.done)
	return nil
}

// each calls change for each id, several at once, and show for each result in order.
// It returns how many ids were changed; one that is gone is not counted.
func each[T any](ids []string, change func(id string) (T, error), show func(id string, result T) error) (changed int, err error) {
	results := make([]T, len(ids))
	faults := make([]error, len(ids))
	slots := make(chan struct{}, scanAtOnce)
	var done sync.WaitGroup
	for i, id := range ids {
		slots <- struct{}{}
		done.Go(func() {
			results[i], faults[i] = change(id)
			<-slots
		})
	}
	done.Wait()
	for i, id := range ids {
		switch {
		case errors.Is(faults[i], wakebell.ErrNotFound): // handled or cancelled since the search
			faults[i] = nil
		case faults[i] == nil:
			changed++
			faults[i] = show(id, results[i])
		}
	}
	return changed, errors.Join(faults...)
}
