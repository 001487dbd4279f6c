package timers

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
)

type deadLsFlags struct {
	deadFlags
	page cli.PageFlags
}

func deadLsCommand(a *cli.App) *cobra.Command {
	f := &deadLsFlags{}
	cmd := &cobra.Command{
		Use:   "ls --topic TOPIC",
		Short: "List the dead letters of a topic, oldest first",
		Long: `Lists the dead letters of a topic, oldest first. A timer may have several.
Filters can be combined.

With -o json each is a line with topic, entry, id, reason, attempts, failures,
activation, died, key and, as a node prints them, content_type, headers,
correlation_id, reply_to, encoding, and body or body_base64.`,
		Example: `  wakebell dead ls --topic invoices
  wakebell dead ls -t invoices --reason 'card declined' --newer-than 24h
  wakebell dead ls -t invoices --limit 0 -o json | jq -r .reason | sort | uniq -c`,
		Args: cli.NoArgs,
	}
	f.register(a, cmd)
	f.page.Register(cmd, cli.ListLimit)
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, _ []string) error {
		return a.Ask(ctx, func(c cli.Client) error { return deadLs(ctx, a, c, f) })
	})
	return cmd
}

func deadLs(ctx context.Context, a *cli.App, c wakebell.Operator, f *deadLsFlags) error {
	filter, err := f.filter()
	if err != nil {
		return err
	}
	screen := a.Screen()
	list := a.NewListing(f.page.Limit, output.Short("ENTRY"), output.Text("ID"), output.Short("DIED"), output.Numeric("ATTEMPTS").AsMinor(),
		output.Numeric("FAILURES").AsMinor(), output.Text("REASON"))
	err = cli.PrintAll(list, c.DeadLetters(ctx, f.topic, filter, f.page.Page()), deadCursor, func(d wakebell.DeadLetter) (any, []string) {
		line := newDeadLine(ctx, a, f.topic, d)
		return line, []string{d.Entry, d.ID, screen.Time(d.Died), strconv.Itoa(d.Attempts), strconv.Itoa(d.Failures), d.Reason}
	})
	if err != nil {
		return err
	}
	return list.RequireShown(func() error { return a.RequireTopic(ctx, c, f.topic) })
}

func deadCursor(d wakebell.DeadLetter) string { return d.Cursor }
