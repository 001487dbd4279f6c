package schedules

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/recurring"
)

func previewCommand(a *cli.App) *cobra.Command {
	var n int
	cmd := &cobra.Command{
		Use:   "preview NAME",
		Short: "Show the next runs of a recurring schedule",
		Long: `Prints the due times of the next runs of a recurring schedule: fewer if it ends,
none while it is paused. The exit code is 3 if there is no such schedule. Crontabs
of Python have no time zone: --zone is that of the Celery app.

With -o json each is a line with name and due.`,
		Example: `  wakebell schedules preview nightly -n 5`,
		Args:    cobra.ExactArgs(1),
	}
	zoneFlag(cmd)
	cmd.Flags().IntVarP(&n, "n", "n", 10, "`number` of runs, up to 10,000")
	a.OutputFlag(cmd)
	return onSchedules(a, cmd, func(ctx context.Context, s recurring.Operator, args []string) error {
		warnOfZone(ctx, a, s, args[0])
		next, err := s.Preview(ctx, args[0], n)
		if err != nil {
			return err
		}
		return printInstants(a, args[0], next)
	})
}

// printInstants prints instants of a recurring schedule.
func printInstants(a *cli.App, name string, instants []time.Time) (err error) {
	for _, at := range instants {
		if a.WantsJSON() {
			err = a.PrintJSON(struct {
				Name string `json:"name"`
				Due  string `json:"due"`
			}{name, output.Stamp(at)})
		} else {
			err = a.Printf("%s\n", output.Stamp(at))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
