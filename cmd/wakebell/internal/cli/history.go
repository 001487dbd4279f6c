package cli

import (
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/wakebelltype"
)

// HistoryFlags are the flags of commands that list attempts.
type HistoryFlags struct {
	filter wakebelltype.HistoryFilter
	since  time.Duration
	after  string
}

// Add adds the flags to a command.
func (f *HistoryFlags) Add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVarP(&f.filter.Last, "lines", "n", 100, "attempts to show, 1 to 1,000")
	flags.StringVar(&f.after, "after", "", "show all attempts behind this `cursor` instead of the last")
	flags.StringVar((*string)(&f.filter.Outcome), "outcome", "", "only those with this `outcome`")
	flags.StringVar(&f.filter.Error, "error-match", "", "only those whose error contains this `text`")
	DurationVar(flags, &f.since, "since", 0, "only those that ended in this `duration` until now; 0: all")
}

// outcomes are the values of --outcome.
var outcomes = []wakebelltype.EventKind{
	wakebelltype.EventAcked, wakebelltype.EventRetried, wakebelltype.EventDead, wakebelltype.EventDiscarded,
	wakebelltype.EventCrashed, wakebelltype.EventSuperseded, wakebelltype.EventCancelled, wakebelltype.EventLost,
	wakebelltype.EventSnoozed, wakebelltype.EventExpired,
}

// Filter returns the filter and the page that the flags select, of one id if args has
// it.
func (f *HistoryFlags) Filter(args []string) (wakebelltype.HistoryFilter, wakebelltype.Page, error) {
	filter := f.filter
	page := wakebelltype.Page{After: f.after}
	switch {
	case filter.Last < 1 || filter.Last > 1000:
		return filter, page, Usagef("--lines: %d is not within 1 and 1000", filter.Last)
	case f.since < 0:
		return filter, page, Usagef("--since: %v, want at least 0", f.since)
	case filter.Outcome != "" && !slices.Contains(outcomes, filter.Outcome):
		return filter, page, Usagef("--outcome: %q, want one of %q", filter.Outcome, outcomes)
	case f.since > 0:
		filter.Since = time.Now().Add(-f.since)
	}
	if len(args) > 0 {
		filter.ID = args[0]
	}
	if f.after != "" {
		filter.Last = 0
	}
	return filter, page, nil
}

// AttemptLine has the JSON fields of an attempt.
type AttemptLine struct {
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

// PrintHistory prints attempts. Line adds the name of their topic or queue to the JSON
// fields; missing returns an error if it is not there, and is called if there are no
// attempts.
func (a *App) PrintHistory(attempts iter.Seq2[wakebelltype.Attempt, error], line func(AttemptLine) any, missing func() error) error {
	list := a.NewListing(0, output.Text("ID"), output.Numeric("ATTEMPT"), output.Short("STARTED"), output.Numeric("TOOK"),
		output.Short("OUTCOME"), output.Text("NODE").AsMinor(), output.Text("ERROR"))
	err := PrintAll(list, attempts, func(t wakebelltype.Attempt) string { return t.Cursor }, func(t wakebelltype.Attempt) (any, []string) {
		fields := AttemptLine{
			t.ID, t.Attempt, t.Node, output.Stamp(t.Started), output.Millis(t.Took), string(t.Outcome), t.Error, t.Final(), t.Cursor,
		}
		return line(fields), []string{
			t.ID, strconv.Itoa(t.Attempt), a.Screen().Time(t.Started), t.Took.Round(100 * time.Microsecond).String(), string(t.Outcome), t.Node, t.Error,
		}
	})
	if err != nil {
		return err
	}
	return list.RequireShown(missing)
}
