package timers

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/explained"
	"github.com/wakebell/wakebell/explain"
)

func explainCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain TOPIC ID",
		Short: "Say why a timer waits, and what happened to it",
		Long: `Says why a timer does not run now, when it can at the earliest, and what happened to
it and, by operators, to its topic. It looks at the first 1,000 timers and the last
1,000 dead letters of the topic. The exit code is 3 if nothing of the timer is stored.

Causes, the first that matters first: not-due, retry, never, paused, no-node, breaker,
damage, moving (shards), key (also of a running timer: it waits on its node behind others
of its key run), key-rate, rate, in-flight, behind (others are due).

With -o json it is one line with state (that of ls, or dead, ended, unknown), summary,
waits (cause, text, since, until, do), earliest, past (at, text), commands and unread:
what could not be read.`,
		Example: `  wakebell explain invoices inv-42
  wakebell explain invoices inv-42 -o json | jq -r '.waits[0].cause'`,
		Args: cobra.ExactArgs(2),
	}
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, args []string) error {
		return a.Ask(ctx, func(c cli.Client) error {
			e, err := explain.Timer(ctx, c, args[0], args[1])
			if err != nil {
				return err
			}
			if err := explained.Print(a, e); err != nil || e.State != explain.StateUnknown {
				return err
			}
			return cli.NotFoundf("no such timer: nothing of %q is stored on %q", args[1], args[0])
		})
	})
	return cmd
}
