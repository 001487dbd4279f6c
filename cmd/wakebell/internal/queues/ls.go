package queues

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

type messageLine struct {
	Queue      string `json:"queue"`
	ID         string `json:"id"`
	State      string `json:"state"`
	Deliveries int    `json:"deliveries"`
	Deadline   string `json:"deadline"`
	Fault      string `json:"fault"`
	output.Content
}

func lsCommand(a *cli.App) *cobra.Command {
	var q wakebelltype.QueueKeys
	var running bool
	var page cli.PageFlags
	cmd := &cobra.Command{
		Use:   "ls --queue QUEUE",
		Short: "List the messages of a queue",
		Long: `Lists the pending messages in the order in which they will be claimed; with
--running those that consumers hold or that wait for their next attempt, by
deadline.

With -o json each is a line with queue, id (empty without an envelope), state
(pending or running), deliveries so far, deadline of a running one, fault (why it
cannot be decoded, or empty) and, as a node prints them, content_type,
headers, correlation_id, reply_to, encoding, and body or body_base64.`,
		Example: `  wakebell queue ls --queue mail
  wakebell queue ls --queue mail --running --limit 0 -o json | jq .deadline`,
		Args: cli.NoArgs,
	}
	nameFlag(cmd, &q)
	cmd.Flags().BoolVar(&running, "running", false, "list running messages instead of pending ones")
	page.Register(cmd, cli.ListLimit)
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, _ []string) error {
		return ask(ctx, a, func(c client) error { return listMessages(ctx, a, c, q, running, page) })
	})
	return cmd
}

func listMessages(ctx context.Context, a *cli.App, c queue.Operator, q wakebelltype.QueueKeys, running bool, page cli.PageFlags) error {
	screen := a.Screen()
	list := a.NewListing(page.Limit, output.Text("ID"), output.Short("STATE"), output.Numeric("DELIVERIES").AsMinor(), output.Short("DEADLINE").AsRare(), output.Text("BODY"))
	err := cli.PrintAll(list, c.Messages(ctx, q, running, page.Page()), messageCursor, func(m wakebelltype.QueueMessage) (any, []string) {
		line := messageLine{a.Prefix + q.Name, m.ID, "pending", m.Deliveries, output.Stamp(m.Deadline), m.Fault, a.MessageContent(ctx, q.Name, m.Payload)}
		if running {
			line.State = "running"
		}
		return line, []string{m.ID, line.State, strconv.Itoa(m.Deliveries), screen.Time(m.Deadline), line.Shown()}
	})
	if err != nil {
		return err
	}
	return list.RequireShown(func() error { return requireQueue(ctx, a, c, q) })
}

func messageCursor(m wakebelltype.QueueMessage) string { return m.Cursor }
