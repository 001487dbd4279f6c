package schedules

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/explained"
	"github.com/wakebell/wakebell/explain"
	"github.com/wakebell/wakebell/recurring"
)

func explainCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain NAME",
		Short: "Say why a recurring schedule does not fire, and when it will",
		Long: `Says whether a recurring schedule waits for its instant, is paused, cannot be read,
has been due without a beat that fires it, or fires for a topic without a node, and what
operators did with it. States are waits, overdue, paused and finished; causes not-due,
paused, fault, no-beat and no-node. The other fields are those of wakebell explain.`,
		Example: `  wakebell schedules explain nightly`,
		Args:    cobra.ExactArgs(1),
	}
	a.OutputFlag(cmd)
	return onSchedules(a, cmd, func(ctx context.Context, s recurring.Operator, args []string) error {
		return a.Ask(ctx, func(c cli.Client) error {
			e, err := explain.Schedule(ctx, s, c, args[0])
			if err != nil {
				return err
			}
			return explained.Print(a, e)
		})
	})
}
