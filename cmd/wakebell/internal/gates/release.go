package gates

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/gate"
)

// releasedLine is the JSON line of gate release.
type releasedLine struct {
	Gate    string `json:"gate"`
	Fence   uint64 `json:"fence"`
	Process string `json:"process"`
}

func releaseCommand(a *cli.App) *cobra.Command {
	var s settings
	var force bool
	cmd := &cobra.Command{
		Use:   "release NAME --force",
		Short: "Take a gate away from its holder",
		Long: `Takes the turn away from its holder and grants it to the next waiter. The holder
is notified, but may not have noticed yet: make sure that it has stopped, or that
the resources it writes to reject its token. The exit code is 3 if the gate is
not held.

With -o json it prints one line with gate, fence and process of the holder.`,
		Example: `  wakebell gate release deploy --force`,
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().BoolVar(&force, "force", false, "required, to prevent an accidental release")
	a.OutputFlag(cmd)
	keysFlag(cmd, &s.keys)
	cmd.RunE = a.Does(func(ctx context.Context, args []string) error {
		if !force {
			return cli.Usagef("--force is required")
		}
		return withGates(ctx, a, cmd, s, func(g client) error { return releaseGate(ctx, a, g, args[0]) })
	})
	return cmd
}

func releaseGate(ctx context.Context, a *cli.App, of gate.Operator, name string) error {
	g, err := of.Show(ctx, name)
	if err != nil {
		return err
	}
	released := false
	if g.Holder.Fence != 0 {
		if released, err = of.ForceRelease(ctx, name, g.Holder.Fence); err != nil {
			return err
		}
	}
	if !released {
		return cli.NotFoundf("not held: gate %q", name)
	}
	if a.WantsJSON() {
		return a.PrintJSON(releasedLine{name, g.Holder.Fence, g.Holder.Process})
	}
	return a.Printf("released %d of %s\n", g.Holder.Fence, output.Escape(g.Holder.Process))
}
