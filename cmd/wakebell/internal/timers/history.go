package timers

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/wakebelltype"
)

type historyFlags struct {
	topic  string
	filter wakebelltype.HistoryFilter
	since  time.Duration
	after  string
}

func historyCommand(a *cli.App) *cobra.Command {
	f := &historyFlags{}
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
	a.TopicFlag(cmd, &f.topic, "`topic` of the attempts")
	flags := cmd.Flags()
	flags.IntVarP(&f.filter.Last, "lines", "n", 100, "attempts to show, 1 to 1,000")
	flags.StringVar(&f.after, "after", "", "show all attempts behind this `cursor` instead of the last")
	flags.StringVar((*string)(&f.filter.Outcome), "outcome", "", "only those with this `outcome`")
	flags.StringVar(&f.filter.Error, "error-match", "", "only those whose error contains this `text`")
	cli.DurationVar(flags, &f.since, "since", 0, "only those that ended in this `duration` until now; 0: all")
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, args []string) error {
		if len(args) > 0 {
			f.filter.ID = args[0]
		}
		return a.Ask(ctx, func(c cli.Client) error { return history(ctx, a, c, f) })
	})
	return cmd
}

// outcomes are the values of --outcome.
var outcomes = []wakebelltype.EventKind{
	wakebelltype.EventAcked, wakebelltype.EventRetried, wakebelltype.EventDead, wakebelltype.EventDiscarded,
	wakebelltype.EventCrashed, wakebelltype.EventSuperseded, wakebelltype.EventCancelled, wakebelltype.EventLost,
}

type historyLine struct {
	Topic   string  `json:"topic"`
	ID      string  `json:"id"`
	Attempt int     `json:"attempt"`
	Node    string  `json:"node"`
	Started string  `json:"started"`
	TookMS  float64 `json:"took_ms"`
	Outcome string  `json:"outcome"`
	Error   string  `json:"error"`
	Final   bool    `json:"final"`
	Cursor  string  `json:"cursor"`
}

func history(ctx context.Context, a *cli.App, c wakebell.Operator, f *historyFlags) error {
	filter := f.filter
	switch {
	case filter.Last < 1 || filter.Last > 1000:
		return cli.Usagef("--lines: %d is not within 1 and 1000", filter.Last)
	case f.since < 0:
		return cli.Usagef("--since: %v, want at least 0", f.since)
	case filter.Outcome != "" && !slices.Contains(outcomes, filter.Outcome):
		return cli.Usagef("--outcome: %q, want one of %q", filter.Outcome, outcomes)
	case f.since > 0:
		filter.Since = time.Now().Add(-f.since)
	}
	if f.after != "" {
		filter.Last = 0
	}
	list := a.NewListing(0, output.Text("ID"), output.Numeric("ATTEMPT"), output.Short("STARTED"), output.Numeric("TOOK"),
		output.Short("OUTCOME"), output.Text("NODE").AsMinor(), output.Text("ERROR"))
	attempts := c.History(ctx, f.topic, filter, wakebelltype.Page{After: f.after})
	return cli.PrintAll(list, attempts, func(t wakebelltype.Attempt) string { return t.Cursor }, func(t wakebelltype.Attempt) (any, []string) {
		line := historyLine{
			a.Prefix + f.topic, t.ID, t.Attempt, t.Node, output.Stamp(t.Started), output.Millis(t.Took), string(t.Outcome), t.Error, t.Final(), t.Cursor,
		}
		return line, []string{
			t.ID, strconv.Itoa(t.Attempt), a.Screen().Time(t.Started), t.Took.Round(100 * time.Microsecond).String(), string(t.Outcome), t.Node, t.Error,
		}
	})
}
