package queues

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/wakebelltype"
)

func deadLsCommand(a *cli.App) *cobra.Command {
	var q wakebelltype.QueueKeys
	var page cli.PageFlags
	cmd := &cobra.Command{
		Use:   "ls --queue QUEUE",
		Short: "List the dead letters of a queue, oldest first",
		Long: `Lists the dead letters of a queue, oldest first.

With -o json each is a line with queue, entry, id, reason, deliveries, died (the
last four empty for Python consumers) and, as a node prints them, content_type,
headers, correlation_id, reply_to, encoding, and body or body_base64.`,
		Example: `  wakebell queue dead ls --queue mail --limit 0 -o json | jq -r .reason`,
		Args:    cli.NoArgs,
	}
	nameFlag(cmd, &q)
	page.Register(cmd, cli.ListLimit)
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, _ []string) error {
		return ask(ctx, a, func(c client) error {
			screen := a.Screen()
			list := a.NewListing(page.Limit, output.Short("ENTRY"), output.Text("ID"), output.Short("DIED"), output.Numeric("DELIVERIES").AsMinor(), output.Text("REASON"))
			err := cli.PrintAll(list, c.DeadLetters(ctx, q, page.Page()), queueDeadCursor, func(l wakebelltype.QueueDeadLetter) (any, []string) {
				line := newDeadLine(ctx, a, q, l)
				return line, []string{l.Entry, l.ID, screen.Time(l.At), strconv.Itoa(l.Deliveries), l.Reason}
			})
			if err != nil {
				return err
			}
			return list.RequireShown(func() error { return requireQueue(ctx, a, c, q) })
		})
	})
	return cmd
}

func queueDeadCursor(l wakebelltype.QueueDeadLetter) string { return l.Cursor }
