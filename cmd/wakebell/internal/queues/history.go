package queues

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/wakebelltype"
)

// historyLine has the JSON fields of an attempt of a message.
type historyLine struct {
	Queue string `json:"queue"`
	cli.AttemptLine
}

func historyCommand(a *cli.App) *cobra.Command {
	var q wakebelltype.QueueKeys
	f := &cli.HistoryFlags{}
	cmd := &cobra.Command{
		Use:   "history --queue QUEUE [ID]",
		Short: "Show the attempts of messages, also of those that are handled",
		Long: `Shows the last recorded attempts of a queue, or of one message, the newest last.
Filters can be combined. Which attempts a node records is its flag --history: by
default those that failed, and the success of a message that was attempted before.
Redis keeps about the last 10,000 attempts of a queue, for up to 7 days, unless
queue purge --kept deletes them.

Outcomes: acked (handled), retried, dead, discarded (failed finally, on a node with
--errors-are-final), crashed (the handler panicked), superseded, cancelled, lost
(the lease expired while the handler ran).

With -o json each is a line with queue, id, attempt, node, started, took_ms,
outcome, error, final (it was the last of its message) and cursor.`,
		Example: `  wakebell queue history --queue mail 01997c5f2f0c7cf08f2ad0c5d1b3a7e4
  wakebell queue history --queue mail --outcome dead --since 24h
  wakebell queue history --queue mail --error-match timeout -o json`,
		Args: cobra.MaximumNArgs(1),
	}
	nameFlag(cmd, &q)
	f.Add(cmd)
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, args []string) error {
		filter, page, err := f.Filter(args)
		if err != nil {
			return err
		}
		return ask(ctx, a, func(c client) error {
			return a.PrintHistory(c.History(ctx, q, filter, page), func(l cli.AttemptLine) any { return historyLine{a.Prefix + q.Name, l} }, func() error {
				return requireQueue(ctx, a, c, q)
			})
		})
	})
	return cmd
}
