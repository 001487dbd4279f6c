package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/wakebelltype"
)

func queueDeadLsCommand(a *app) *cobra.Command {
	var q wakebelltype.QueueKeys
	var page pageFlags
	cmd := &cobra.Command{
		Use:   "ls --queue QUEUE",
		Short: "List the dead letters of a queue, oldest first",
		Long: `Lists the dead letters of a queue, oldest first.

With -o json each is a line with queue, entry, id, reason, deliveries, died (the
last four empty for Python consumers) and, as a node prints them, content_type,
headers, correlation_id, reply_to, and body or body_base64.`,
		Example: `  wakebell queue dead ls --queue mail --limit 0 -o json | jq -r .reason`,
		Args:    cobra.NoArgs,
	}
	queueFlag(cmd, &q)
	page.register(cmd, listLimit)
	a.outputFlag(cmd)
	cmd.RunE = a.does(func(ctx context.Context, _ []string) error {
		return askQueues(ctx, a, func(c queues) error {
			list := a.newListing(page.limit, "ENTRY", "ID", "DIED", "DELIVERIES", "REASON")
			return printAll(list, c.DeadLetters(ctx, q, page.page()), queueDeadCursor, func(l wakebelltype.QueueDeadLetter) (any, []string) {
				line := newQueueDeadLine(a, q, l)
				return line, []string{l.Entry, l.ID, line.Died, strconv.Itoa(l.Deliveries), l.Reason}
			})
		})
	})
	return cmd
}

func queueDeadCursor(l wakebelltype.QueueDeadLetter) string { return l.Cursor }
