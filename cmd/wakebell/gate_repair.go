package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/wakebell/wakebell"
)

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
