package topics

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/internal/attended"
	"github.com/wakebell/wakebell/internal/progress"
	"github.com/wakebell/wakebell/internal/ranked"
	"github.com/wakebell/wakebell/wakebelltype"
)

func topicsCommand(a *cli.App) *cobra.Command {
	var discover, queues bool
	var page cli.PageFlags
	sort, only := cli.OneOf("name", ranked.Orders()[1:]...), cli.OneOf("", "problems")
	cmd := &cobra.Command{
		Use:   "topics",
		Short: "List the topics with their counts",
		Long: `Lists the topics that Wakebell scheduled on by name, with the numbers of their
timers, due timers, dead letters and nodes that handle them, the number of shards if
it is not 1, whether and why they are paused, and the settings that are overridden on
all nodes. With --prefix it lists only topics with that prefix; names are shown in full.
Primary is the node that polls a topic first, if the topic is divided among nodes that
compete for it. On nodes has open circuit breakers with their reason, the present
adaptive concurrency, groups with their weights, and limits per key that nodes have of
their own. Fault is the error if
a topic cannot be read, what of its data was lost, or for how long due timers wait for a
node (over a minute, unattended in JSON); the others are listed. A second table has the queues that
Wakebell published to or handled, if there are any.

--sort orders the topics by the number of due timers, by how long the first of them
waits (oldest), by how late 99 % of timers began at most (late) and how many
attempts ended (rate) in the last 10 minutes, or by dead letters, the largest
first. --only problems leaves out topics that can be read, have lost no data, no dead letters, no open
circuit breaker, and no timer that has been due for over a minute. Both read all
topics before they print the first.

--discover also finds topics that only Python peers use. It scans all keys of
Redis, which takes time proportional to their number.

With -o json each topic is a line with topic, timers, due, dead, nodes (null if
unknown), unattended, shards, division (nodes in their order, the primary first), reports (for each
node that has any of it: node, breaker, breaker_since, breaker_until, breaker_reason,
concurrency, group, weight, and its options), paused, paused_at, paused_by,
paused_reason, paused_until, settings, fault, oldest_due_s, late_ms, rate (a minute) and problem (the
worst; empty: none). Queues are
listed with --queues only: queue, pending, processing, ended, dead, oldest,
separator, dead_letter_key and fault.`,
		Example: `  wakebell topics
  wakebell topics --sort oldest --only problems
  wakebell topics --queues -o json
  wakebell topics --discover -o json`,
		Args: cli.NoArgs,
	}
	page.Register(cmd, 0)
	a.OutputFlag(cmd)
	cmd.Flags().BoolVar(&discover, "discover", false, "scan all keys to find topics of Python peers")
	cmd.Flags().BoolVar(&queues, "queues", false, "list queues, not topics")
	cmd.MarkFlagsMutuallyExclusive("queues", "discover")
	cmd.Flags().Var(&sort, "sort", "what topics are sorted by")
	cmd.Flags().Var(&only, "only", "list only topics with problems")
	cli.CompleteChoice(cmd, "sort", sort)
	cli.CompleteChoice(cmd, "only", only)
	for _, flag := range []string{"sort", "only"} {
		cmd.MarkFlagsMutuallyExclusive("queues", flag)
		cmd.MarkFlagsMutuallyExclusive("after", flag)
	}
	cmd.RunE = a.Does(func(ctx context.Context, _ []string) error {
		prefix, read, chosen := a.Prefix, page.Page(), selection{sort.String(), only.String() != ""}
		if chosen.all() {
			read.Limit = 0
		}
		return withTopics(ctx, a, nil, discover, read, func(c cli.Client, names topicNames) error {
			if queues {
				return listQueues(ctx, a, c.QueueOperator(), prefix, page)
			}
			failed := listTopics(ctx, a, c, names, page, chosen)
			return errors.Join(failed, addQueues(ctx, a, c, prefix, failed == nil))
		})
	})
	cmd.AddCommand(topicsRmCommand(a), topicsShardsCommand(a), topicsReshardCommand(a), topicsExportCommand(a), topicsImportCommand(a), topicsMoveCommand(a))
	return cmd
}

// addQueues prints the queues below the topics. The table of topics is complete
// without them, so an error is only a note, and the lack of the right to see queues is
// none. If note is false, the command reports an error already, most often the same.
func addQueues(ctx context.Context, a *cli.App, c cli.Client, prefix string, note bool) error {
	if a.WantsJSON() {
		return nil
	}
	all, err := knownQueues(ctx, c.QueueOperator(), prefix, 0, wakebelltype.Page{})
	if err != nil && ctx.Err() == nil {
		if note && !errors.Is(err, wakebell.ErrForbidden) {
			a.Notef("wakebell: queues cannot be listed: %s\n", output.Escape(output.Fault(err)))
		}
		return nil
	}
	if err != nil || len(all) == 0 {
		return err
	}
	screen := a.Screen()
	list := a.NewListing(0, queueColumns()...)
	if err := a.Printf("\n"); err != nil {
		return err
	}
	for _, q := range all {
		if err := list.Add(q, queueRow(screen, q)...); err != nil {
			return err
		}
	}
	return list.End()
}

// topicNames returns the full names of the topics of a command. Beside an error they are
// those on the servers that answer.
type topicNames func(context.Context) ([]string, error)

// withTopics runs fn with an Operator that takes full names and with the names of
// the topics: those named or, by default, those of the registry with the prefix.
// With --remote, names are without the node's prefix.
func withTopics(ctx context.Context, a *cli.App, named []string, discover bool, page wakebelltype.Page, fn func(cli.Client, topicNames) error) error {
	prefix := a.Prefix
	if a.RemoteAddress() == "" {
		a.Prefix = ""
	}
	return a.Ask(ctx, func(c cli.Client) error {
		if len(named) > 0 {
			return fn(c, given(named, prefix))
		}
		return fn(c, func(ctx context.Context) (names []string, err error) {
			if discover {
				var stop func()
				ctx, stop = scanning(ctx, a)
				defer stop()
			}
			for name, err := range c.Topics(ctx, discover, wakebelltype.Page{After: page.After}) {
				if err != nil {
					return names, err
				}
				if !strings.HasPrefix(name, prefix) {
					continue
				}
				if names = append(names, name); len(names) == page.Limit {
					break
				}
			}
			return names, nil
		})
	})
}

// scanning returns a context in which a scan of all keys shows its progress. A node does
// not report that of its scan.
func scanning(ctx context.Context, a *cli.App) (_ context.Context, stop func()) {
	const what = "scan all keys"
	if a.RemoteAddress() != "" {
		return ctx, a.Elapsed(ctx, what)
	}
	var shown *output.Progress
	began := false
	return progress.With(ctx, func(done, total int64) {
		if !began {
			shown, began = a.Progress(what, total), true
		}
		shown.Set(done)
	}), func() { shown.End() }
}

// given returns the names of the command line.
func given(named []string, prefix string) topicNames {
	return func(context.Context) (names []string, err error) {
		for _, topic := range named {
			if topic == "" {
				return nil, cli.Usagef("--topic: empty")
			}
			names = append(names, prefix+topic)
		}
		return names, nil
	}
}

type topicLine struct {
	Topic  string `json:"topic"`
	Timers int64  `json:"timers"`
	Due    int64  `json:"due"`
	Dead   int64  `json:"dead"`
	Nodes  *int   `json:"nodes"`
	Shards int    `json:"shards"`

	Unattended string `json:"unattended"` // for how long due timers wait while there is no node

	Division []string     `json:"division"`
	Reports  []reportLine `json:"reports"`
	pauseLine
	Settings map[string]any `json:"settings"`
	Fault    string         `json:"fault"`

	OldestDueS float64 `json:"oldest_due_s"`
	LateMS     float64 `json:"late_ms"` // the 99th percentile of the last 10 minutes
	Rate       float64 `json:"rate"`    // attempts that ended in a minute, in the last 10
	Problem    string  `json:"problem"`
}

func listTopics(ctx context.Context, a *cli.App, c wakebell.Operator, names topicNames, page cli.PageFlags, chosen selection) error {
	found, lost := names(ctx)
	if len(found) == 0 && lost != nil {
		return lost
	}
	list := a.NewListing(page.Limit, output.Text("TOPIC"), output.Numeric("TIMERS"), output.Numeric("DUE"), output.Numeric("DEAD").StyledBy(deadStyle),
		output.Numeric("NODES").AsMinor(), output.Numeric("SHARDS").AsRare(), output.Text("PRIMARY").AsRare(), output.Short("PAUSED").StyledBy(pausedStyle),
		output.Text("REASON").AsRare(), output.Text("SETTINGS").AsRare(), output.Text("ON NODES").AsRare().StyledBy(reportStyle),
		output.Text("FAULT").AsRare().Styled(output.Bad))
	screen := a.Screen()
	if chosen.all() {
		rows, err := chosen.read(ctx, c, found)
		if err != nil {
			return err
		}
		if page.Limit > 0 {
			rows = rows[:min(page.Limit, len(rows))]
		}
		for _, o := range rows {
			line, cells := topicRow(screen, o)
			if err := list.Add(line, cells...); err != nil {
				return err
			}
		}
		return errors.Join(list.End(), lost)
	}
	if page.Limit > 0 && len(found) > page.Limit {
		found = found[:page.Limit]
		list.CutAfter(found[page.Limit-1])
	}
	list.FirstColumn(found)
	for part := range slices.Chunk(found, topicsPage) {
		all, err := c.Overview(ctx, part...)
		if err != nil {
			return err
		}
		for _, o := range all {
			line, cells := topicRow(screen, o)
			if err := list.Add(line, cells...); err != nil {
				return err
			}
		}
	}
	return errors.Join(list.End(), lost)
}

// faultOf says what of a topic could not be read, or what of its data was lost.
func faultOf(o wakebelltype.Overview) string {
	if o.Err != nil {
		return output.Fault(o.Err)
	}
	return o.Damage
}

// topicRow returns the JSON value and the cells of a topic.
func topicRow(screen output.Screen, o wakebelltype.Overview) (topicLine, []string) {
	settings, shown := overrides(o.Control.Settings)
	t := topicLine{
		Topic: o.Topic, Timers: o.Stats.Total, Due: o.Stats.Due, Dead: o.Stats.Dead, Shards: o.Shards,
		Division: append([]string{}, o.Division...), Reports: reportLines(o.Reports), pauseLine: newPauseLine(o.Control), Settings: settings, Fault: faultOf(o),
		Unattended: attended.Waits(o), OldestDueS: output.Rounded(o.Stats.Lag.Seconds()), LateMS: output.Millis(ranked.Late(o)),
		Rate: output.Rounded(ranked.Rate(o)), Problem: ranked.Problem(o),
	}
	t.Paused = t.Paused || o.Stats.Paused // set even if the other settings could not be read
	nodes := ""
	if o.Nodes >= 0 {
		t.Nodes, nodes = &o.Nodes, output.Number(int64(o.Nodes))
	}
	primary := ""
	if len(o.Division) > 0 {
		primary = path.Dir(o.Division[0]) // without the random part
	}
	shards := ""
	if o.Shards > 1 {
		shards = output.Number(int64(o.Shards))
	}
	paused := output.YesNo(t.Paused)
	if t.Paused && screen.Relative && !o.Control.PausedAt.IsZero() {
		paused = screen.Time(o.Control.PausedAt)
	}
	reason := t.Reason
	if t.Paused && !o.Control.PausedUntil.IsZero() {
		reason = strings.TrimSpace("until " + screen.Time(o.Control.PausedUntil) + " " + reason)
	}
	texts := make([]string, len(shown))
	for i, override := range shown {
		texts[i] = override[0] + "=" + override[1]
	}
	return t, []string{
		t.Topic, screen.Count(t.Timers), screen.Count(t.Due), screen.Count(t.Dead), nodes, shards, primary, paused, reason, strings.Join(texts, " "), reportText(screen, o), cmp.Or(t.Fault, t.Unattended),
	}
}

// pausedStyle is the style of a cell that says since when a topic is paused.
func pausedStyle(cell string) output.Style {
	if cell == output.YesNo(false) {
		return output.Plain
	}
	return output.Warn
}

// topicsPage is the number of topics per read, which bounds the memory of a listing.
const topicsPage = 1000
