package topics

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/wakebelltype"
)

const minStatsInterval = 100 * time.Millisecond

type statsFlags struct {
	topics   []string
	watch    bool
	interval time.Duration
}

func statsCommand(a *cli.App) *cobra.Command {
	f := &statsFlags{}
	cmd := &cobra.Command{
		Use:   "stats [--topic TOPIC]... [--watch]",
		Short: "Show the counts of topics",
		Long: `Shows the counts of topics, by default of all that topics lists: timers, and of
these pending (not due yet), due (can be claimed now), leased (a handler runs)
and retrying (waiting for the next attempt); dead letters; and the age of the
oldest due timer. Every timer is counted once. With more than 1,000 timers leased
or retried, pending, leased and retrying are estimates.

With --watch it repeats this every --interval until it is interrupted, with exit
code 0, and shows the change of timers and dead letters per second since the
previous reading. The rates of scheduled and handled timers are unknown: Redis
stores the current timers, not past ones.

With -o json each topic is a line per reading with at, topic, timers, pending,
due, leased, retrying, dead, estimated, oldest_due (an instant), oldest_due_s
(its age in seconds), paused, timers_per_s and dead_per_s (null at the first
reading) and fault.`,
		Example: `  wakebell stats
  wakebell stats --topic invoices --watch
  wakebell stats -t invoices --watch --interval 10s -o json`,
		Args: cobra.NoArgs,
	}
	a.TopicsFlag(cmd, &f.topics, "`topic` to show (default all)")
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "repeat until interrupted")
	cli.DurationVar(cmd.Flags(), &f.interval, "interval", time.Second, "time between readings of --watch, at least 100ms")
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, _ []string) error {
		if f.interval < minStatsInterval {
			return cli.Usagef("--interval: %v, want at least %v", f.interval, minStatsInterval)
		}
		return withTopics(ctx, a, f.topics, false, wakebelltype.Page{}, func(c wakebell.Operator, names topicNames) error {
			w := &statsWatch{app: a, topics: c, names: names, watches: f.watch}
			if f.watch {
				return w.watch(ctx, f.interval)
			}
			return w.look(ctx)
		})
	})
	return cmd
}

type statsLine struct {
	At         string   `json:"at"`
	Topic      string   `json:"topic"`
	Timers     int64    `json:"timers"`
	Pending    int64    `json:"pending"`
	Due        int64    `json:"due"`
	Leased     int64    `json:"leased"`
	Retrying   int64    `json:"retrying"`
	Dead       int64    `json:"dead"`
	Estimated  bool     `json:"estimated"`
	OldestDue  string   `json:"oldest_due"`
	OldestDueS float64  `json:"oldest_due_s"`
	Paused     bool     `json:"paused"`
	TimersPerS *float64 `json:"timers_per_s"`
	DeadPerS   *float64 `json:"dead_per_s"`
	Fault      string   `json:"fault"`
}

// statsWatch reads the counts of topics and stores the previous reading.
type statsWatch struct {
	app    *cli.App
	topics wakebell.Operator
	names  topicNames

	watches bool
	looked  time.Time // time of the previous reading
	before  map[string]wakebelltype.Stats
}

// Watch repeats look until ctx ends. The first reading must succeed; later errors
// are reported, and the watch continues.
func (w *statsWatch) watch(ctx context.Context, interval time.Duration) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	if err := w.look(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := w.look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, output.ErrStdout):
			return err
		case err != nil:
			w.app.Notef("wakebell: %s\n", output.Escape(output.Fault(err)))
		}
	}
}

// look reads and prints once, in a single write, so that a terminal does not
// flicker.
func (w *statsWatch) look(ctx context.Context) error {
	names, err := w.names(ctx)
	if err != nil {
		return err
	}
	all, err := w.topics.Overview(ctx, names...)
	if err != nil {
		return err
	}
	now := time.Now()
	lines := make([]statsLine, len(all))
	seen := make(map[string]wakebelltype.Stats, len(all))
	for i, o := range all {
		lines[i] = w.line(o, now)
		if o.Err == nil {
			seen[o.Topic] = o.Stats
		}
	}
	first := w.before == nil
	w.before, w.looked = seen, now
	return w.print(lines, first)
}

func (w *statsWatch) line(o wakebelltype.Overview, now time.Time) statsLine {
	s := o.Stats
	l := statsLine{
		At: output.Stamp(now), Topic: o.Topic, Timers: s.Total, Pending: s.Pending, Due: s.Due, Leased: s.Leased,
		Retrying: s.Retrying, Dead: s.Dead, Estimated: s.Estimated, OldestDue: output.Stamp(s.OldestDue),
		OldestDueS: output.Rounded(s.Lag.Seconds()), Paused: s.Paused, Fault: output.Fault(o.Err),
	}
	if before, ok := w.before[o.Topic]; ok && o.Err == nil {
		perSecond := func(was, is int64) *float64 {
			return new(output.Rounded(float64(is-was) / now.Sub(w.looked).Seconds()))
		}
		l.TimersPerS, l.DeadPerS = perSecond(before.Total, s.Total), perSecond(before.Dead, s.Dead)
	}
	return l
}

func statsColumns() []output.Column {
	return []output.Column{
		output.Text("TOPIC"), output.Numeric("TIMERS"), output.Numeric("PENDING").AsMinor(), output.Numeric("DUE"), output.Numeric("LEASED"),
		output.Numeric("RETRYING").AsMinor(), output.Numeric("DEAD").StyledBy(deadStyle), output.Short("OLDEST DUE").AsRare(),
		output.Short("PAUSED").StyledBy(output.WarnIfYes), output.Numeric("TIMERS/S").AsRare(), output.Numeric("DEAD/S").AsMinor().AsRare(),
		output.Text("FAULT").AsRare().Styled(output.Bad),
	}
}

// deadStyle is the style of a number of dead letters.
func deadStyle(cell string) output.Style {
	if cell == "0" {
		return output.Plain
	}
	return output.Bad
}

// clearScreen moves the cursor to the top left and clears the screen.
const clearScreen = "\x1b[H\x1b[2J"

func (w *statsWatch) print(lines []statsLine, first bool) error {
	var out bytes.Buffer
	if w.app.WantsJSON() {
		for _, l := range lines {
			text, err := output.JSONLine(l)
			if err != nil {
				return err
			}
			out.Write(text)
		}
		return w.app.Write(out.Bytes())
	}
	redraws := w.watches && output.IsTerminal(w.app.Stdout) && os.Getenv("TERM") != "dumb"
	rows, columns := 0, 0
	if redraws {
		rows, columns = output.TerminalSize(w.app.Stdout)
	}
	switch {
	case first:
	case redraws:
		out.WriteString(clearScreen)
	default:
		out.WriteByte('\n')
	}
	begin := out.Len()
	screen := w.app.Screen()
	t := output.NewTable(&out, screen, statsColumns()...)
	for _, l := range lines {
		about := func(n int64) string {
			if l.Estimated {
				return "~" + screen.Count(n)
			}
			return screen.Count(n)
		}
		oldest := ""
		if l.OldestDue != "" {
			oldest = time.Duration(l.OldestDueS * float64(time.Second)).Round(time.Millisecond).String()
		}
		t.Row(l.Topic, screen.Count(l.Timers), about(l.Pending), screen.Count(l.Due), about(l.Leased), about(l.Retrying), screen.Count(l.Dead),
			oldest, output.YesNo(l.Paused), rate(l.TimersPerS), rate(l.DeadPerS), l.Fault)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return w.app.Write(append(out.Bytes()[:begin:begin], fit(out.Bytes()[begin:], rows, columns)...))
}

// fit cuts the lines that do not fit on the screen, so that the column names stay
// visible, and appends how many it cut. If rows or columns are 0, the size is
// unknown and nothing is cut.
func fit(lines []byte, rows, columns int) []byte {
	const below = 2 // the line about cut lines, and the cursor
	if rows <= below || columns <= 0 {
		return lines
	}
	all := bytes.SplitAfter(lines, []byte{'\n'})
	all = all[:len(all)-1] // the last one is empty
	taken, kept := 0, 0
	for i, line := range all {
		height := max(1, (ansi.StringWidth(string(line))+columns-1)/columns)
		more := below
		if i == len(all)-1 {
			more-- // nothing would be left off
		}
		if taken+height > rows-more {
			return fmt.Appendf(lines[:kept:kept], "%d more: name topics with --topic, or make the terminal larger\n", len(all)-i)
		}
		taken, kept = taken+height, kept+len(line)
	}
	return lines
}

func rate(perSecond *float64) string {
	if perSecond == nil {
		return ""
	}
	text := strconv.FormatFloat(*perSecond, 'f', 1, 64)
	if *perSecond > 0 {
		text = "+" + text
	}
	return text
}
