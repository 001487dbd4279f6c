package gates

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/explained"
	"github.com/wakebell/wakebell/explain"
)

func explainCommand(a *cli.App) *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "explain NAME",
		Short: "Say who has the turn of a gate, and who waits for it",
		Long: `Says who has the turn of a gate and for how long, and what operators did with the
gate. States are free, held, queued and unknown; the cause is holder. The other fields
are those of wakebell explain.`,
		Example: `  wakebell gate explain deploy`,
		Args:    cobra.ExactArgs(1),
	}
	a.OutputFlag(cmd)
	keysFlag(cmd, &s.keys)
	cmd.RunE = a.Does(func(ctx context.Context, args []string) error {
		return withGates(ctx, a, cmd, s, func(g client) error {
			return a.Ask(ctx, func(c cli.Client) error {
				e, err := explain.Gate(ctx, g, c, args[0])
				if err != nil {
					return err
				}
				return explained.Print(a, e)
			})
		})
	})
	return cmd
}
