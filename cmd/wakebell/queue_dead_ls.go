package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/wakebell/wakebell"
)

func (a *app) queueDeadLsCommand() *cobra.Command {
	var q wakebell.QueueName
	var limit int
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
	limitFlag(cmd, &limit)
	a.outputFlag(cmd)
	cmd.RunE = a.does(func(ctx context.Context, _ []string) error {
		if limit < 0 {
			return usagef("--limit: %d is negative", limit)
		}
		return a.ask(ctx, func(c asked) error {
			list := a.newListing(limit, "ENTRY", "ID", "DIED", "DELIVERIES", "REASON")
			for l, err := range c.QueueLetters(ctx, q, 0) {
				if err != nil {
					return err
				}
				if list.full() {
					break
				}
				line := a.queueDeadLine(q, l)
				if err := list.add(line, l.Entry, l.ID, line.Died, strconv.Itoa(l.Deliveries), l.Reason); err != nil {
					return err
				}
			}
			return list.end()
		})
	})
	return cmd
}
