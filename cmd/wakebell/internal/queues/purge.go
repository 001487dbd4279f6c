package queues

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/wakebelltype"
)

func purgeCommand(a *cli.App) *cobra.Command {
	var q wakebelltype.QueueKeys
	var running, kept, yes bool
	cmd := &cobra.Command{
		Use:   "purge --queue QUEUE",
		Short: "Delete the messages of a queue",
		Long: `Deletes the pending messages and prints how many; dead letters stay. --running
also deletes those that consumers hold, --kept what is kept of handled messages: the
payloads of completed and failed ones, the counts of stats --since and the history. It asks for confirmation on a terminal and requires --yes
elsewhere.

With -o json it prints one line with queue and deleted, a number.`,
		Example: `  wakebell queue purge --queue mail
  wakebell queue purge --queue mail --running --kept --yes`,
		Args: cli.NoArgs,
	}
	nameFlag(cmd, &q)
	cmd.Flags().BoolVar(&running, "running", false, "also delete messages that consumers hold")
	cmd.Flags().BoolVar(&kept, "kept", false, "also delete kept payloads, the counts and the history")
	cli.YesFlag(cmd, &yes, "do not ask for confirmation")
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, _ []string) error {
		return ask(ctx, a, func(c client) error {
			err := a.Confirm(yes, func() (string, error) {
				st, err := c.Stats(ctx, q)
				return fmt.Sprintf("Delete %d pending messages of %s?", st.Pending, a.Prefix+q.Name), err
			})
			if err != nil {
				return err
			}
			stop := followStats(ctx, a, c, "delete", q, func(st wakebelltype.QueueStats) int64 {
				if running {
					return st.Pending + st.Processing
				}
				return st.Pending
			})
			defer stop()
			n, err := c.Purge(ctx, q, running)
			if err == nil && kept {
				var more int64
				more, err = c.PurgeKept(ctx, q)
				n += more
			}
			return errors.Join(err, printDeleted(a, q, n))
		})
	})
	return cmd
}

// followStats shows the progress of a change of a queue, by a count that it lowers.
func followStats(ctx context.Context, a *cli.App, c client, what string, q wakebelltype.QueueKeys, count func(wakebelltype.QueueStats) int64) (stop func()) {
	return a.Follow(ctx, what, func(ctx context.Context) (int64, error) {
		st, err := c.Stats(ctx, q)
		return count(st), err
	})
}

func printDeleted(a *cli.App, q wakebelltype.QueueKeys, n int64) error {
	if a.WantsJSON() {
		return a.PrintJSON(struct {
			Queue   string `json:"queue"`
			Deleted int64  `json:"deleted"`
		}{a.Prefix + q.Name, n})
	}
	return a.Printf("deleted %d\n", n)
}
