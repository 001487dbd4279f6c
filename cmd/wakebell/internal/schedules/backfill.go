package schedules

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/recurring"
)

// backfilledLine is the JSON line of schedules backfill.
type backfilledLine struct {
	Name  string `json:"name"`
	Fired int    `json:"fired"`
}

// backfill is the range of a backfill.
type backfill struct {
	name     string
	from, to time.Time
}

func backfillCommand(a *cli.App) *cobra.Command {
	var from, to string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "backfill NAME --from INSTANT --to INSTANT",
		Short: "Fire the runs of a time range",
		Long: `Fires all runs of a recurring schedule that are due within a range, whether they
were fired before or not; at most 10,000. The range excludes its end. The exit
code is 3 if there is no such schedule. --dry-run lists the runs, as preview does,
and fires none. Crontabs of Python have no time zone: --zone must be that of the
beats, or the runs have other instants and ids than theirs.

With -o json it prints one line with name and fired, a number. After an error it
prints nothing; the error says how many runs were fired before it.`,
		Example: `  wakebell schedules backfill nightly --from 2026-11-01T00:00:00Z --to 2026-11-08T00:00:00Z`,
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&from, "from", "", "first `instant`, in RFC 3339")
	cmd.Flags().StringVar(&to, "to", "", "end of the range, not included, an `instant` in RFC 3339")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "list the runs and fire none")
	_ = cmd.MarkFlagRequired("from") // the flags exist, so this cannot fail
	_ = cmd.MarkFlagRequired("to")
	celeryFlag(a, cmd)
	zoneFlag(cmd)
	a.OutputFlag(cmd)
	return onSchedules(a, cmd, func(ctx context.Context, s recurring.Operator, args []string) (err error) {
		b := backfill{name: args[0]}
		if b.from, err = cli.InstantFlag("from", from); err != nil {
			return err
		}
		if b.to, err = cli.InstantFlag("to", to); err != nil {
			return err
		}
		warnOfZone(ctx, a, s, b.name)
		if dryRun {
			return b.list(ctx, a, s)
		}
		return b.run(ctx, a, s)
	})
}

// run fires the runs.
func (b backfill) run(ctx context.Context, a *cli.App, s recurring.Operator) error {
	began := time.Now()
	stop := a.FollowDone(ctx, "backfill", func(ctx context.Context) (int64, func(context.Context) (int64, error)) {
		return b.follow(ctx, s)
	})
	n, err := s.Backfill(ctx, b.name, b.from, b.to)
	stop()
	if err != nil {
		return unfinishedBackfill(n, err)
	}
	a.Summaryf("%d runs were fired, in %v", n, output.Took(began))
	if a.WantsJSON() {
		return a.PrintJSON(backfilledLine{b.name, n})
	}
	return a.Printf("%d\n", n)
}

// follow returns how many runs there are, and what counts those that are fired: by the
// number of the last run, which those of a beat raise as well.
func (b backfill) follow(ctx context.Context, s recurring.Operator) (int64, func(context.Context) (int64, error)) {
	instants, _ := s.Instants(ctx, b.name, b.from, b.to) // the backfill returns the error
	before, _ := s.Get(ctx, b.name)
	return int64(len(instants)), func(ctx context.Context) (int64, error) {
		now, err := s.Get(ctx, b.name)
		return max(now.Runs-before.Runs, 0), err
	}
}

// list prints the runs.
func (b backfill) list(ctx context.Context, a *cli.App, s recurring.Operator) error {
	instants, err := s.Instants(ctx, b.name, b.from, b.to)
	if err == nil {
		err = printInstants(a, b.name, instants)
	}
	if err != nil {
		return err
	}
	a.Notef("wakebell: %d runs would be fired; nothing was changed\n", len(instants))
	return nil
}

// unfinishedBackfill is the error of a backfill that has fired some runs.
func unfinishedBackfill(fired int, err error) error {
	if fired == 0 {
		return err
	}
	return fmt.Errorf("after %d runs were fired: %w", fired, err)
}
