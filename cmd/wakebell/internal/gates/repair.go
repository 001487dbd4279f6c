package gates

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

// repairLine is the JSON line of gate repair.
type repairLine struct {
	Gate    string `json:"gate"`
	Before  uint64 `json:"before"`
	After   uint64 `json:"after"`
	Removed int    `json:"removed"`
	Cleared int    `json:"cleared"`
}

func repairCommand(a *cli.App) *cobra.Command {
	var s settings
	var floor uint64
	cmd := &cobra.Command{
		Use:   "repair NAME",
		Short: "Raise the fencing tokens of a gate above those in use",
		Long: `Repairs a gate whose tokens went back, because Redis lost data and its clock was
set back: raises them above all tokens that the guard has seen, and above
--floor. A turn with a lower token is taken away, and waiters with lower tickets
take new ones. A healthy gate is not changed.

Tokens of the guard that cannot have been issued are ignored and cleared: those
above the last one issued and more than a day ahead of the clocks of Redis and of
this machine (with --remote: of the node's). To undo tokens that were raised too
far, use gate rm.

Prints one line of JSON: gate, before and after (the last token issued), removed
(tickets), cleared (resources of the guard).`,
		Example: `  wakebell gate repair deploy
  wakebell gate repair deploy --floor 1795246947173773`,
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().Uint64Var(&floor, "floor", 0, "a `token` that a resource without a guard has seen")
	cli.JSONFlag(cmd)
	keysFlag(cmd, &s.keys)
	cmd.RunE = a.Does(func(ctx context.Context, args []string) error {
		return withGates(ctx, a, cmd, s, func(g client) error {
			r, err := g.Repair(ctx, args[0], floor)
			if err != nil {
				return err
			}
			return a.PrintJSON(repairLine{args[0], r.Before, r.After, r.Removed, r.Cleared})
		})
	})
	return cmd
}
