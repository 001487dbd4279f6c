package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
)

type gateRmFlags struct {
	force, yes bool
	keys       wakebell.GateKeys
}

func (a *app) gateRmCommand() *cobra.Command {
	f := &gateRmFlags{}
	cmd := &cobra.Command{
		Use:   "rm NAME",
		Short: "Remove a gate",
		Long: `Removes a gate with its queue and what its guard remembers. Idle gates expire by
themselves after 5 minutes, so this is for those whose tokens were lifted too far.
A gate that is held or waited for is left as it is, with exit code 1, unless
--force is given: then its turn is lost, and those who wait take new tickets. 3
is the exit code when there is no such gate. It asks on a terminal, and wants
--yes elsewhere.

Tokens go on above the last one, and those from before are refused by the guard.
Only where they were over a day ahead of Redis's clock the next ones are below
them: lower what a database has remembered of them too.

With -o json it prints one line with gate and removed.`,
		Example: `  wakebell gate rm deploy
  wakebell gate rm deploy --force --yes`,
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().BoolVar(&f.force, "force", false, "also when it is held or waited for")
	yesFlag(cmd, &f.yes, "do not ask")
	a.outputFlag(cmd)
	gateKeysFlag(cmd, &f.keys)
	cmd.RunE = a.does(func(ctx context.Context, args []string) error {
		return a.withGates(ctx, cmd, wakebell.GatesConfig{Keys: f.keys}, func(g gates) error { return a.gateRm(ctx, g, args[0], f) })
	})
	return cmd
}

// errNoGate is what exit code 3 says of a gate that is not there.
var errNoGate = errors.New("no such gate")

func (a *app) gateRm(ctx context.Context, of wakebell.GateOperator, name string, f *gateRmFlags) error {
	err := a.confirm(f.yes, func() (string, error) {
		g, err := of.Show(ctx, name)
		question := fmt.Sprintf("Remove gate %s?", name)
		if g.Holder.Fence != 0 {
			question = fmt.Sprintf("Remove gate %s, which %s holds and %d wait for?", name, g.Holder.Process, g.Waiting)
		}
		return question, err
	})
	if err != nil {
		return err
	}
	existed, err := of.Remove(ctx, name, f.force)
	switch {
	case errors.Is(err, wakebell.ErrGateHeld):
		return fmt.Errorf("%w; --force removes it all the same", err)
	case err != nil:
		return err
	case !existed:
		return fmt.Errorf("%w: %q", errNoGate, name)
	}
	if a.wantsJSON() {
		return a.printJSON(struct {
			Gate    string `json:"gate"`
			Removed bool   `json:"removed"`
		}{name, true})
	}
	return a.printf("removed %s\n", escape(name))
}
