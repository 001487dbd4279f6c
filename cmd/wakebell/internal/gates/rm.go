package gates

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/wakebelltype"
)

type rmFlags struct {
	force, yes bool
	keys       wakebelltype.GateKeys
}

func rmCommand(a *cli.App) *cobra.Command {
	f := &rmFlags{}
	cmd := &cobra.Command{
		Use:   "rm NAME",
		Short: "Remove a gate",
		Long: `Removes a gate with its queue and the tokens of its guard. Idle gates expire after
5 minutes, so this is for gates whose tokens were raised too far. A gate that is
held or has waiters is not removed, and the exit code is 1, unless --force is
given: then the turn is lost and waiters take new tickets. The exit code is 3 if
there is no such gate. It asks for confirmation on a terminal and requires --yes
elsewhere.

Tokens continue above the last one, and the guard rejects earlier ones. Only if
the last one was more than a day ahead of the clock of Redis do new tokens start
below it: then lower the tokens that other databases have stored as well.

With -o json it prints one line with gate and removed.`,
		Example: `  wakebell gate rm deploy
  wakebell gate rm deploy --force --yes`,
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().BoolVar(&f.force, "force", false, "remove it even if it is held or has waiters")
	cli.YesFlag(cmd, &f.yes, "do not ask for confirmation")
	a.OutputFlag(cmd)
	keysFlag(cmd, &f.keys)
	cmd.RunE = a.Does(func(ctx context.Context, args []string) error {
		return withGates(ctx, a, cmd, settings{keys: f.keys}, func(g client) error { return removeGate(ctx, a, g, args[0], f) })
	})
	return cmd
}

func removeGate(ctx context.Context, a *cli.App, of gate.Operator, name string, f *rmFlags) error {
	err := a.Confirm(f.yes, func() (string, error) {
		g, err := of.Show(ctx, name)
		question := fmt.Sprintf("Remove gate %s?", name)
		if g.Holder.Fence != 0 {
			question = fmt.Sprintf("Remove gate %s, held by %s, with %d waiters?", name, g.Holder.Process, g.Waiting)
		}
		return question, err
	})
	if err != nil {
		return err
	}
	existed, err := of.Remove(ctx, name, f.force)
	switch {
	case errors.Is(err, gate.ErrHeld):
		return fmt.Errorf("%w; --force removes it anyway", err)
	case err != nil:
		return err
	case !existed:
		return cli.NotFoundf("no such gate: %q", name)
	}
	if a.WantsJSON() {
		return a.PrintJSON(struct {
			Gate    string `json:"gate"`
			Removed bool   `json:"removed"`
		}{name, true})
	}
	return a.Printf("removed %s\n", output.Escape(name))
}
