package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

type queueLine struct {
	Queue      string `json:"queue"`
	ID         string `json:"id"`
	State      string `json:"state"`
	Deliveries int    `json:"deliveries"`
	Deadline   string `json:"deadline"`
	Fault      string `json:"fault"`
	content
}

func queueLsCommand(a *app) *cobra.Command {
	var q wakebelltype.QueueKeys
	var running bool
	var page pageFlags
	cmd := &cobra.Command{
		Use:   "ls --queue QUEUE",
		Short: "List the messages of a queue",
		Long: `Lists the pending messages in the order in which they will be claimed; with
--running those that consumers hold or that wait for their next attempt, by
deadline.

With -o json each is a line with queue, id (empty without an envelope), state
(pending or running), deliveries so far, deadline of a running one, fault (why it
cannot be decoded, or empty) and, as a node prints them, content_type,
headers, correlation_id, reply_to, and body or body_base64.`,
		Example: `  wakebell queue ls --queue mail
  wakebell queue ls --queue mail --running --limit 0 -o json | jq .deadline`,
		Args: cobra.NoArgs,
	}
	queueFlag(cmd, &q)
	cmd.Flags().BoolVar(&running, "running", false, "list running messages instead of pending ones")
	page.register(cmd, listLimit)
	a.outputFlag(cmd)
	cmd.RunE = a.does(func(ctx context.Context, _ []string) error {
		return askQueues(ctx, a, func(c queues) error { return queueLs(ctx, a, c, q, running, page) })
	})
	return cmd
}

func queueLs(ctx context.Context, a *app, c queue.Operator, q wakebelltype.QueueKeys, running bool, page pageFlags) error {
	list := a.newListing(page.limit, "ID", "STATE", "DELIVERIES", "DEADLINE", "BODY")
	return printAll(list, c.Messages(ctx, q, running, page.page()), messageCursor, func(m wakebelltype.QueueMessage) (any, []string) {
		line := queueLine{a.prefix + q.Name, m.ID, "pending", m.Deliveries, stamp(m.Deadline), m.Fault, payload(m.Payload)}
		if running {
			line.State = "running"
		}
		return line, []string{m.ID, line.State, strconv.Itoa(m.Deliveries), line.Deadline, line.shown()}
	})
}

func messageCursor(m wakebelltype.QueueMessage) string { return m.Cursor }
