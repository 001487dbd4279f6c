package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/wakebell/wakebell"
)

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
