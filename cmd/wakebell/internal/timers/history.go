package timers

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

// historyLine has the JSON fields of an attempt of a timer.
type historyLine struct {
	Topic string `json:"topic"`
	cli.AttemptLine
}

func historyCommand(a *cli.App) *cobra.Command {
	var topic string
	f := &cli.HistoryFlags{}
	cmd := &cobra.Command{
		Use:   "history --topic TOPIC [ID]",
		Short: "Show the attempts of timers, also of those that are handled",
		Long: `Shows the last recorded attempts of a topic, or of one timer, the newest last.
Filters can be combined. Which attempts a node records is its flag --history: by
default those that failed, and the success of a timer that was attempted before.
Redis keeps about the last 10,000 attempts of a topic, for up to 7 days.

Outcomes: acked (handled), retried, dead, discarded (rejected, on a node with
--discard-rejected), crashed (the handler panicked), superseded, cancelled, lost
(the lease expired while the handler ran).

With -o json each is a line with topic, id, attempt, node, started, took_ms,
outcome, error, final (it was the last of its timer) and cursor.`,
		Example: `  wakebell history --topic invoices inv-42
  wakebell history -t invoices --outcome dead --since 24h
  wakebell history -t invoices --error-match timeout -o json`,
		Args: cobra.MaximumNArgs(1),
	}
	a.TopicFlag(cmd, &topic, "`topic` of the attempts")
	f.Add(cmd)
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, args []string) error {
		filter, page, err := f.Filter(args)
		if err != nil {
			return err
		}
		return a.Ask(ctx, func(c cli.Client) error {
			return a.PrintHistory(c.History(ctx, topic, filter, page), func(l cli.AttemptLine) any { return historyLine{a.Prefix + topic, l} }, func() error {
				return a.RequireTopic(ctx, c, topic)
			})
		})
	})
	return cmd
}
