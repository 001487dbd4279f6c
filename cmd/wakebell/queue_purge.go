package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/wakebelltype"
)

func queuePurgeCommand(a *app) *cobra.Command {
	var q wakebelltype.QueueKeys
	var running, kept, yes bool
	cmd := &cobra.Command{
		Use:   "purge --queue QUEUE",
		Short: "Delete the messages of a queue",
		Long: `Deletes the pending messages and prints how many; dead letters stay. --running
also deletes those that consumers hold, --kept the payloads kept of completed and
failed messages. It asks for confirmation on a terminal and requires --yes
elsewhere.

With -o json it prints one line with queue and deleted, a number.`,
		Example: `  wakebell queue purge --queue mail
  wakebell queue purge --queue mail --running --kept --yes`,
		Args: cobra.NoArgs,
	}
	queueFlag(cmd, &q)
	cmd.Flags().BoolVar(&running, "running", false, "also delete messages that consumers hold")
	cmd.Flags().BoolVar(&kept, "kept", false, "also delete kept payloads of completed and failed messages")
	yesFlag(cmd, &yes, "do not ask for confirmation")
	a.outputFlag(cmd)
	cmd.RunE = a.does(func(ctx context.Context, _ []string) error {
		return askQueues(ctx, a, func(c queues) error {
			err := a.confirm(yes, func() (string, error) {
				st, err := c.Stats(ctx, q)
				return fmt.Sprintf("Delete %d pending messages of %s?", st.Pending, a.prefix+q.Name), err
			})
			if err != nil {
				return err
			}
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

func printDeleted(a *app, q wakebelltype.QueueKeys, n int64) error {
	if a.wantsJSON() {
		return a.printJSON(struct {
			Queue   string `json:"queue"`
			Deleted int64  `json:"deleted"`
		}{a.prefix + q.Name, n})
	}
	return a.printf("deleted %d\n", n)
}
