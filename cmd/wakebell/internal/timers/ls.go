package timers

import (
	"context"
	"path"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/internal/attended"
	"github.com/wakebell/wakebell/wakebelltype"
)

type lsFlags struct {
	topic     string
	dueBefore string
	running   bool
	page      cli.PageFlags
	searchFlags
}

func lsCommand(a *cli.App) *cobra.Command {
	f := &lsFlags{}
	cmd := &cobra.Command{
		Use:   "ls --topic TOPIC",
		Short: "List the timers of a topic",
		Long: `Lists the timers of a topic by due time. For a running timer, due is its lease
expiry; for a retried one, its next attempt. State is pending, retrying, parked
(waiting for its key), running (a node has leased it: a handler has it, or it waits
there for one, as behind others of its key run) or never (an infinite due time, which
only another program can have written). The table shows due for a pending or retrying timer whose
instant has come and which waits for a handler.

--search lists only timers whose ids begin with a text; with --content also those
with the text in a header or in the body. For that it reads at most --scan timers,
and prints the cursor to continue with.

With -o json each timer is a line with topic, id, state, due, activation,
attempts, failures, last_error, key, due_now (shown as due), node and since.

Since when a timer runs, and on which node, is known of the 10 handlers of each node that
have run longest, from about 10 s on.`,
		Example: `  wakebell ls --topic invoices
  wakebell ls -t invoices --due-before 10m --limit 0 -o json
  wakebell ls -t invoices --running
  wakebell ls -t invoices --search inv-2031-
  wakebell ls -t invoices --search card-4711 --content --scan 100000`,
		Args: cli.NoArgs,
	}
	flags := cmd.Flags()
	a.TopicFlag(cmd, &f.topic, "`topic` to list")
	flags.StringVar(&f.dueBefore, "due-before", "", "only those due before this `instant` in RFC 3339, or this duration from now")
	flags.BoolVar(&f.running, "running", false, "only running timers")
	f.register(cmd)
	f.page.Register(cmd, cli.ListLimit)
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, _ []string) error {
		return a.Ask(ctx, func(c cli.Client) error { return listTimers(ctx, a, c, f) })
	})
	return cmd
}

// timerLine is the JSON line of ls.
type timerLine struct {
	Topic      string `json:"topic"`
	ID         string `json:"id"`
	State      string `json:"state"`
	Due        string `json:"due"`
	Activation string `json:"activation"`
	Attempts   int    `json:"attempts"`
	Failures   int    `json:"failures"`
	LastError  string `json:"last_error"`
	Key        string `json:"key"`
	DueNow     bool   `json:"due_now"`
	Node       string `json:"node"`  // of a handler that runs for long
	Since      string `json:"since"` // when the node gave it the timer
}

// newTimerLine describes a timer. It is due if its instant is at most due.
func newTimerLine(i wakebell.Info, due time.Time) timerLine {
	return timerLine{
		Topic: i.Topic, ID: i.ID, State: string(i.State), Due: output.Stamp(i.Due), Activation: output.Stamp(i.Activation),
		Attempts: i.Attempts, Failures: i.Failures, LastError: i.LastError, Key: i.Key, DueNow: i.IsDue(due),
	}
}

type overviews interface {
	Overview(ctx context.Context, topics ...string) ([]wakebelltype.Overview, error)
}

// overviewOf returns a function that reads the overview of a topic once, when it is needed; nil
// if that fails: what it adds to a listing is left out.
func overviewOf(ctx context.Context, c overviews, topic string) func() *wakebelltype.Overview {
	return sync.OnceValue(func() *wakebelltype.Overview {
		all, err := c.Overview(ctx, topic)
		if err != nil || len(all) == 0 {
			return nil
		}
		return &all[0]
	})
}

// dueBy returns the instant up to which timers are due, by the clock of Redis if the overview is
// known.
func dueBy(overview func() *wakebelltype.Overview) time.Time {
	if o := overview(); o != nil {
		return attended.Due(*o)
	}
	return time.Now()
}

// redisNow returns the present instant by the clock of Redis, by which timers become due.
func redisNow(ctx context.Context, c cli.Client, topic string, overview func() *wakebelltype.Overview) time.Time {
	o := overview()
	if o == nil {
		return time.Now()
	}
	return attended.Now(*o, func() (wakebelltype.Throughput, error) { return c.Throughput(ctx, topic, time.Minute) })
}

// runs adds where a timer runs and since when, and returns the latter.
func (t *timerLine) runs(info wakebell.Info, overview func() *wakebelltype.Overview) (since time.Time) {
	if info.State != wakebell.StateRunning {
		return since
	}
	if o := overview(); o != nil {
		if run, found := o.Run(info.ID); found && run.Attempt >= info.Attempts { // not of a node that had it before
			t.Node, t.Since, since = run.Node, output.Stamp(run.Since), run.Since
		}
	}
	return since
}

// shownNode is the node without its random part.
func (t timerLine) shownNode() string {
	if t.Node == "" {
		return ""
	}
	return path.Dir(t.Node)
}

// shownState is the state that a table shows.
func (t timerLine) shownState() string {
	if t.DueNow {
		return stateDue
	}
	return t.State
}

// stateDue is shown for a timer whose instant has come and that waits for a handler.
const stateDue = "due"

func listTimers(ctx context.Context, a *cli.App, c cli.Client, f *lsFlags) error {
	overview := overviewOf(ctx, c, f.topic)
	filter, err := f.filter(func() time.Time { return redisNow(ctx, c, f.topic, overview) })
	if err != nil {
		return err
	}
	searches, err := f.searches()
	if err != nil {
		return err
	}
	found := c.List(ctx, f.topic, filter, f.page.Page())
	if searches {
		found = search(ctx, a, c, f.topic, filter, f.page.Page().After, &f.searchFlags)
	}
	list := newTimerList(a, overview, f.page.Limit, f.running)
	if err := cli.PrintAll(list.Listing, found, timerCursor, list.row); err != nil {
		return err
	}
	return list.RequireShown(func() error { return a.RequireTopic(ctx, c, f.topic) })
}

// timerList is a listing of timers.
type timerList struct {
	*cli.Listing
	screen   output.Screen
	running  bool                          // all run: where and since when is part of the table
	overview func() *wakebelltype.Overview // of the topic
}

func newTimerList(a *cli.App, overview func() *wakebelltype.Overview, limit int, running bool) timerList {
	columns := []output.Column{
		output.Text("ID"), output.Short("STATE").StyledBy(stateStyle), output.Short("DUE"),
		output.Short("ACTIVATION").AsMinor(), output.Numeric("ATTEMPTS").AsMinor(), output.Numeric("FAILURES").AsMinor(),
	}
	if running {
		columns = append(columns, output.Short("SINCE"), output.Text("NODE"))
	}
	return timerList{Listing: a.NewListing(limit, columns...), screen: a.Screen(), running: running, overview: overview}
}

func (l timerList) row(info wakebell.Info) (any, []string) {
	t := newTimerLine(info, dueBy(l.overview))
	since := t.runs(info, l.overview)
	cells := []string{t.ID, t.shownState(), l.screen.Time(info.Due), l.screen.Time(info.Activation), strconv.Itoa(t.Attempts), strconv.Itoa(t.Failures)}
	if l.running {
		cells = append(cells, l.screen.Time(since), t.shownNode())
	}
	return t, cells
}

func (l timerList) add(info wakebell.Info) error {
	value, cells := l.row(info)
	return l.Add(value, cells...)
}

func stateStyle(state string) output.Style {
	switch wakebell.State(state) {
	case wakebell.StateRunning:
		return output.Good
	case wakebell.StateRetrying, stateDue:
		return output.Warn
	default:
		return output.Plain
	}
}

func timerCursor(i wakebell.Info) string { return i.Cursor }

func (f *lsFlags) filter(now func() time.Time) (wakebell.Filter, error) {
	filter := wakebell.Filter{Running: f.running}
	if f.dueBefore == "" {
		return filter, nil
	}
	if d, err := output.ParseDuration(f.dueBefore); err == nil {
		filter.DueBefore = now().Add(d)
		return filter, nil
	}
	at, err := time.Parse(time.RFC3339Nano, f.dueBefore)
	if err != nil {
		return filter, cli.Usagef("--due-before: %q is neither an instant such as 2031-01-02T15:04:05Z nor a duration such as 10m", f.dueBefore)
	}
	filter.DueBefore = at
	return filter, nil
}
