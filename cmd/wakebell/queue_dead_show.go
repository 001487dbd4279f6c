package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/wakebelltype"
)

func queueDeadShowCommand(a *app) *cobra.Command {
	var q wakebelltype.QueueKeys
	cmd := &cobra.Command{
		Use:   "show --queue QUEUE ENTRY",
		Short: "Show a dead letter with its body",
		Long: `Shows a dead letter, named by the entry that ls prints. The exit code is 3 if
there is none. With -o json it is one line with the fields of queue dead ls.`,
		Example: `  wakebell queue dead show --queue mail 6b3f… -o json | jq .body`,
		Args:    cobra.ExactArgs(1),
	}
	queueFlag(cmd, &q)
	a.outputFlag(cmd)
	cmd.RunE = a.does(func(ctx context.Context, args []string) error {
		return askQueues(ctx, a, func(c queues) error {
			l, err := c.DeadLetter(ctx, q, args[0])
			if err != nil {
				return err
			}
			d := newQueueDeadLine(a, q, l)
			if a.wantsJSON() {
				return a.printJSON(d)
			}
			return a.printRows([][2]string{
				{"queue", d.Queue},
				{"entry", d.Entry},
				{"id", d.ID},
				{"reason", d.Reason},
				{"deliveries", strconv.Itoa(d.Deliveries)},
				{"died", d.Died},
				{"body", d.shown()},
			})
		})
	})
	return cmd
}
