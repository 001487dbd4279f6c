package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
)

func (a *app) gateReleaseCommand() *cobra.Command {
	var cfg wakebell.GatesConfig
	var force bool
	cmd := &cobra.Command{
		Use:   "release NAME --force",
		Short: "Take a gate away from its holder",
		Long: `Takes the turn away from whoever has it, and hands over to the next. The holder
is told, but may not know yet, or may be unable to hear: make sure that it has
ended, or that what it writes to refuses its token. 3 is the exit code when
nobody holds the gate.`,
		Example: `  wakebell gate release deploy --force`,
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().BoolVar(&force, "force", false, "required, because nobody else's gate is released by accident")
	gateKeysFlag(cmd, &cfg.Keys)
	cmd.RunE = a.does(func(ctx context.Context, args []string) error {
		if !force {
			return usagef("--force is required")
		}
		return a.withGates(ctx, cmd, cfg, func(g gates) error { return a.gateRelease(ctx, g, args[0]) })
	})
	return cmd
}

func (a *app) gateRelease(ctx context.Context, of wakebell.GateOperator, name string) error {
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
		return fmt.Errorf("%w: nobody holds gate %q", errNotHeld, name)
	}
	return a.printf("released %d of %s\n", g.Holder.Fence, escape(g.Holder.Process))
}

// errNotHeld is what exit code 3 says of gates.
var errNotHeld = errors.New("not held")
