package queues

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

func deadRmCommand(a *cli.App) *cobra.Command {
	f := &deadChoice{}
	cmd := &cobra.Command{
		Use:   "rm --queue QUEUE (ENTRY | --all)",
		Short: "Delete dead letters of a queue",
		Long: `Deletes dead letters and prints how many. The exit code is 3 if ENTRY is absent.
It asks for confirmation on a terminal and requires --yes elsewhere.

With -o json it prints one line with queue and deleted, a number.`,
		Example: `  wakebell queue dead rm --queue mail --all`,
		Args:    cobra.MaximumNArgs(1),
	}
	f.register(cmd)
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, args []string) error {
		if err := f.choose(args); err != nil {
			return err
		}
		return ask(ctx, a, func(c client) error {
			if err := confirmDead(ctx, a, c, f, "Delete"); err != nil {
				return err
			}
			return removeDead(ctx, a, c, f)
		})
	})
	return cmd
}

func removeDead(ctx context.Context, a *cli.App, c client, f *deadChoice) error {
	if f.entry == "" {
		stop := followStats(ctx, a, c, "delete", f.queue, func(st wakebelltype.QueueStats) int64 { return st.Dead })
		n, err := deleteAllDead(ctx, c, f.queue)
		stop()
		if err != nil {
			return cli.SoFar(err, n, "dead letters were deleted; run the same command again for the rest")
		}
		return printDeleted(a, f.queue, n)
	}
	l, err := c.DeadLetter(ctx, f.queue, f.entry)
	if err != nil {
		return err
	}
	n, err := c.DeleteDeadLetters(ctx, f.queue, l)
	if err != nil {
		return cli.SoFar(err, int64(n), "dead letters were deleted; run the same command again for the rest")
	}
	return printDeleted(a, f.queue, int64(n))
}

// deleteAllDead deletes the dead letters that exist when it starts, the oldest
// first, a page at a time.
func deleteAllDead(ctx context.Context, c queue.Operator, q wakebelltype.QueueKeys) (deleted int64, err error) {
	const page = 500
	st, err := c.Stats(ctx, q)
	if err != nil {
		return 0, err
	}
	for left := st.Dead; left > 0; {
		deadLetters := make([]wakebelltype.QueueDeadLetter, 0, page)
		for l, err := range c.DeadLetters(ctx, q, wakebelltype.Page{Limit: int(min(left, page))}) {
			if err != nil {
				return deleted, err
			}
			deadLetters = append(deadLetters, l)
		}
		n, err := c.DeleteDeadLetters(ctx, q, deadLetters...)
		deleted += int64(n)
		if err != nil || n == 0 {
			return deleted, err
		}
		left -= int64(len(deadLetters))
	}
	return deleted, nil
}
