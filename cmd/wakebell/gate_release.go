package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

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

func (a *app) gateGuardCommand() *cobra.Command {
	var cfg wakebell.GatesConfig
	cmd := &cobra.Command{
		Use:   "guard NAME RESOURCE FENCE",
		Short: "Accept a token for a resource, or refuse an old one",
		Long: `Remembers the token as the newest that the resource has seen, or exits with 1
because it has seen a newer one or no turn has had the token. For commands of
gate hold, before they write.

With --elsewhere the gate itself is on another Redis, so that the guard outlasts
a loss of it. Nothing is known there of turns: tokens up to a day ahead of the
clock are accepted.`,
		Example: `  wakebell gate hold deploy --exec 'wakebell gate guard deploy bucket $WAKEBELL_FENCE && ./upload.sh'`,
		Args:    cobra.ExactArgs(3),
	}
	cmd.Flags().BoolVar(&cfg.GuardsElsewhere, "elsewhere", false, "the gate is on another Redis than this guard")
	gateKeysFlag(cmd, &cfg.Keys)
	cmd.RunE = a.does(func(ctx context.Context, args []string) error {
		fence, err := strconv.ParseUint(args[2], 10, 64)
		if err != nil {
			return usagef("FENCE: %q is no fencing token", args[2])
		}
		return a.withGates(ctx, cmd, cfg, func(g gates) error {
			return g.Guard(ctx, args[0], args[1], fence)
		})
	})
	return cmd
}

// gateRepairLine is what gate repair prints.
type gateRepairLine struct {
	Gate    string `json:"gate"`
	Before  uint64 `json:"before"`
	After   uint64 `json:"after"`
	Removed int    `json:"removed"`
	Cleared int    `json:"cleared"`
}

func (a *app) gateRepairCommand() *cobra.Command {
	var cfg wakebell.GatesConfig
	var floor uint64
	cmd := &cobra.Command{
		Use:   "repair NAME",
		Short: "Lift the fencing tokens of a gate above those that were used",
		Long: `For a gate whose tokens have stepped back, because Redis lost data and its clock
was set back: lifts them above all that the guard has seen, and above --floor.
A turn below is taken away, and those who wait with tickets below take new ones.
On a gate that is well it changes nothing.

Tokens of the guard that no turn can have had lift nothing and are cleared: those
above the last one issued and over a day ahead of the clocks of Redis and of this
machine (over a node: of the node's). Tokens that were lifted too far are left
again with gate rm.

Prints one line of JSON: gate, before and after (the last token issued), removed
(tickets), cleared (resources of the guard).`,
		Example: `  wakebell gate repair deploy
  wakebell gate repair deploy --floor 1795246947173773`,
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().Uint64Var(&floor, "floor", 0, "a `token` that a resource outside has seen")
	gateKeysFlag(cmd, &cfg.Keys)
	cmd.RunE = a.does(func(ctx context.Context, args []string) error {
		return a.withGates(ctx, cmd, cfg, func(g gates) error {
			r, err := g.Repair(ctx, args[0], floor)
			if err != nil {
				return err
			}
			return a.printJSON(gateRepairLine{args[0], r.Before, r.After, r.Removed, r.Cleared})
		})
	})
	return cmd
}
