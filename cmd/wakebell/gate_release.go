package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/gate"
)

func gateReleaseCommand(a *app) *cobra.Command {
	var cfg gate.Config
	var force bool
	cmd := &cobra.Command{
		Use:   "release NAME --force",
		Short: "Take a gate away from its holder",
		Long: `Takes the turn away from its holder and grants it to the next waiter. The holder
is notified, but may not have noticed yet: make sure that it has stopped, or that
the resources it writes to reject its token. The exit code is 3 if the gate is
not held.`,
		Example: `  wakebell gate release deploy --force`,
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().BoolVar(&force, "force", false, "required, to prevent an accidental release")
	gateKeysFlag(cmd, &cfg.Keys)
	cmd.RunE = a.does(func(ctx context.Context, args []string) error {
		if !force {
			return usagef("--force is required")
		}
		return withGates(ctx, a, cmd, cfg, func(g gates) error { return gateRelease(ctx, a, g, args[0]) })
	})
	return cmd
}

func gateRelease(ctx context.Context, a *app, of gate.Operator, name string) error {
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
		return notFoundf("not held: gate %q", name)
	}
	return a.printf("released %d of %s\n", g.Holder.Fence, escape(g.Holder.Process))
}
