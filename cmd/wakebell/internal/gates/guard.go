package gates

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

// guardedLine is the JSON line of gate guard.
type guardedLine struct {
	Gate     string `json:"gate"`
	Resource string `json:"resource"`
	Fence    uint64 `json:"fence"`
}

func guardCommand(a *cli.App) *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "guard NAME RESOURCE FENCE",
		Short: "Check a fencing token for a resource",
		Long: `Stores the token as the newest that the resource has seen. The exit code is 1 if
the resource has seen a newer token, or if no turn has had the token. Use it in
commands of gate hold before they write.

With --elsewhere the gate is on another Redis, so that the guard survives a loss
of it. The guard cannot know the issued tokens then: it accepts tokens up to a
day ahead of the clock.

With -o json it prints one line with gate, resource and fence.`,
		Example: `  wakebell gate hold deploy --exec 'wakebell gate guard deploy bucket $WAKEBELL_FENCE && ./upload.sh'`,
		Args:    cobra.ExactArgs(3),
	}
	cmd.Flags().BoolVar(&s.switches.Elsewhere, "elsewhere", false, "the gate is on another Redis than this guard")
	a.OutputFlag(cmd)
	keysFlag(cmd, &s.keys)
	cmd.RunE = a.Does(func(ctx context.Context, args []string) error {
		fence, err := strconv.ParseUint(args[2], 10, 64)
		if err != nil {
			return cli.Usagef("FENCE: %q is not a fencing token", args[2])
		}
		return withGates(ctx, a, cmd, s, func(g client) error {
			if err := g.Guard(ctx, args[0], args[1], fence); err != nil || !a.WantsJSON() {
				return err
			}
			return a.PrintJSON(guardedLine{args[0], args[1], fence})
		})
	})
	return cmd
}
