package schedules

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/recurring"
)

// backfilledLine is the JSON line of schedules backfill.
type backfilledLine struct {
	Name  string `json:"name"`
	Fired int    `json:"fired"`
}

func backfillCommand(a *cli.App) *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use:   "backfill NAME --from INSTANT --to INSTANT",
		Short: "Fire the runs of a time range",
		Long: `Fires all runs of a recurring schedule that are due within a range, whether they
were fired before or not; at most 10,000. The range excludes its end. The exit
code is 3 if there is no such schedule.

With -o json it prints one line with name and fired, a number. After an error it
prints nothing; the error says how many runs were fired before it.`,
		Example: `  wakebell schedules backfill nightly --from 2026-11-01T00:00:00Z --to 2026-11-08T00:00:00Z`,
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&from, "from", "", "first `instant`, in RFC 3339")
	cmd.Flags().StringVar(&to, "to", "", "end of the range, not included, an `instant` in RFC 3339")
	_ = cmd.MarkFlagRequired("from") // the flags exist, so this cannot fail
	_ = cmd.MarkFlagRequired("to")
	celeryFlag(a, cmd)
	a.OutputFlag(cmd)
	return onSchedules(a, cmd, func(ctx context.Context, s recurring.Operator, args []string) error {
		first, err := cli.InstantFlag("from", from)
		if err != nil {
			return err
		}
		end, err := cli.InstantFlag("to", to)
		if err != nil {
			return err
		}
		n, err := s.Backfill(ctx, args[0], first, end)
		if err != nil {
			return unfinishedBackfill(n, err)
		}
		if a.WantsJSON() {
			return a.PrintJSON(backfilledLine{args[0], n})
		}
		return a.Printf("%d\n", n)
	})
}

// unfinishedBackfill is the error of a backfill that has fired some runs.
func unfinishedBackfill(fired int, err error) error {
	if fired == 0 {
		return err
	}
	return fmt.Errorf("after %d runs were fired: %w", fired, err)
}
