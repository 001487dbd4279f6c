package topics

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

const minStatsInterval = 100 * time.Millisecond

type statsFlags struct {
	topics   []string
	queues   bool
	watch    bool
	interval time.Duration
	since    time.Duration // of the throughput; 0: without it
}

func statsCommand(a *cli.App) *cobra.Command {
	f := &statsFlags{}
	cmd := &cobra.Command{
		Use:   "stats [--topic TOPIC]... [--watch]",
		Short: "Show the counts of topics",
		Long: `Shows the counts of topics, by default of all that topics lists: timers, and of
these pending (not due yet), due (can be claimed now), leased (by a node: a handler
has them, or they wait on it for one) and retrying (waiting for the next attempt); dead letters; and the age of the
oldest due timer, and open circuit breakers of nodes. Every timer is counted once. With more than 1,000 timers leased
or retried, pending, leased and retrying are estimates.

With --watch it repeats this every --interval until it is interrupted, with exit
code 0, and shows the change of timers and dead letters per second since the
previous reading. A second table has the queues that Wakebell published to or
handled, unless topics are named.

With --since, 1 min to 90 days, it shows how many timers were handled, failed and
dead-lettered since then, and draws the handled ones as a sparkline: by minute for up
to 24 hours, otherwise by day. LATE P50 and LATE P99 are how late half of the timers,
and 99 of 100, were at most when they began. Nodes write their counts every 5 s.

With -o json each topic is a line per reading with at, topic, timers, pending,
due, leased, retrying, parked, dead, estimated, oldest_due (an instant), oldest_due_s
(its age in seconds), paused, timers_per_s and dead_per_s (null at the first
reading), fault and breaker_open (nodes whose circuit breaker is not closed), and
with --since throughput: step_s, from (an instant), and the lists scheduled, handled,
failed, dead, lateness_p50_s and lateness_p99_s with a number for each step. With
--queues each queue is a line with queue, pending, processing, ended, dead, oldest,
separator, dead_letter_key and fault, and with --since throughput, where published
is in place of scheduled.`,
		Example: `  wakebell stats
  wakebell stats --since 6h
  wakebell stats --topic invoices --watch
  wakebell stats -t invoices --watch --interval 10s -o json`,
		Args: cli.NoArgs,
	}
	a.TopicsFlag(cmd, &f.topics, "`topic` to show (default all)")
	cmd.Flags().BoolVar(&f.queues, "queues", false, "show queues, not topics")
	cmd.MarkFlagsMutuallyExclusive("queues", "topic")
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "repeat until interrupted")
	cli.DurationVar(cmd.Flags(), &f.interval, "interval", time.Second, "time between readings of --watch, at least 100ms")
	cli.ThroughputFlag(cmd.Flags(), &f.since)
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, _ []string) error {
		if err := cli.CheckThroughput(f.since); err != nil {
			return err
		}
		if f.interval < minStatsInterval {
			return cli.Usagef("--interval: %v, want at least %v", f.interval, minStatsInterval)
		}
		prefix := a.Prefix
		return withTopics(ctx, a, f.topics, false, wakebelltype.Page{}, func(c cli.Client, names topicNames) error {
			w := &statsWatch{app: a, topics: c, names: names, watches: f.watch, since: f.since, named: len(f.topics) > 0}
			if len(f.topics) == 0 {
				w.queues, w.prefix, w.alone = c.QueueOperator(), prefix, f.queues
			}
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
	Parked     int64    `json:"parked"`
	Dead       int64    `json:"dead"`
	Estimated  bool     `json:"estimated"`
	OldestDue  string   `json:"oldest_due"`
	OldestDueS float64  `json:"oldest_due_s"`
	Paused     bool     `json:"paused"`
	TimersPerS *float64 `json:"timers_per_s"`
	DeadPerS   *float64 `json:"dead_per_s"`
	Fault      string   `json:"fault"`

	BreakerOpen int `json:"breaker_open"` // nodes

	Throughput *cli.ThroughputLine `json:"throughput,omitempty"`

	oldestDue time.Time
	breaker   string
}

// statsWatch reads the counts of topics and stores the previous reading.
type statsWatch struct {
	app    *cli.App
	topics wakebell.Operator
	names  topicNames

	queues queue.Operator // nil: queues are not shown
	prefix string         // of their names
	alone  bool           // without topics

	watches bool
	named   bool // topics are named, and must be there
	since   time.Duration
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
	var names []string
	var lost error
	if !w.alone {
		if names, lost = w.names(ctx); lost != nil && len(names) == 0 {
			return lost
		}
	}
	all, err := w.topics.Overview(ctx, names...)
	if err != nil {
		return err
	}
	now := time.Now()
	lines := make([]statsLine, len(all))
	seen := make(map[string]wakebelltype.Stats, len(all))
	var progress *output.Progress
	if w.since > 0 && !w.watches { // one round trip for each
		progress = w.app.Progress("read", int64(len(all)))
		defer progress.End()
	}
	for i, o := range all {
		progress.Add(1)
		lines[i] = w.line(o, now)
		if o.Err == nil {
			seen[o.Topic] = o.Stats
		}
		if w.since == 0 {
			continue
		}
		t, err := w.topics.Throughput(ctx, names[i], w.since)
		switch {
		case ctx.Err() != nil:
			return err
		case err != nil:
			lines[i].Fault = output.Fault(errors.Join(o.Err, err))
		default:
			lines[i].Throughput = cli.NewThroughputLine(t)
		}
	}
	queues, err := w.readQueues(ctx)
	if err != nil {
		return err
	}
	first := w.before == nil
	w.before, w.looked = seen, now
	err = errors.Join(w.print(lines, queues, first), lost)
	if first && w.named {
		err = errors.Join(err, w.missing(ctx, all))
	}
	return err
}

// missing returns an error for the named topics that are not there. A watch only warns:
// it waits for them.
func (w *statsWatch) missing(ctx context.Context, all []wakebelltype.Overview) error {
	var missing []error
	for _, o := range all {
		switch {
		case o.Err != nil || o.Stats.Total+o.Stats.Dead > 0:
		case w.watches:
			w.app.WarnUnused(ctx, w.topics, o.Topic)
		default:
			missing = append(missing, w.app.RequireTopic(ctx, w.topics, o.Topic))
		}
	}
	return errors.Join(missing...)
}

// readQueues returns the queues to show. Beside topics their error only hides them.
func (w *statsWatch) readQueues(ctx context.Context) ([]queueLine, error) {
	if w.queues == nil || w.app.WantsJSON() && !w.alone {
		return nil, nil
	}
	all, err := knownQueues(ctx, w.queues, w.prefix, w.since, wakebelltype.Page{})
	if err != nil && (w.alone || ctx.Err() != nil) {
		return nil, err
	}
	return all, nil
}

func (w *statsWatch) line(o wakebelltype.Overview, now time.Time) statsLine {
	s := o.Stats
	l := statsLine{
		At: output.Stamp(now), Topic: o.Topic, Timers: s.Total, Pending: s.Pending, Due: s.Due, Leased: s.Leased,
		Retrying: s.Retrying, Parked: s.Parked, Dead: s.Dead, Estimated: s.Estimated, OldestDue: output.Stamp(s.OldestDue),
		OldestDueS: output.Rounded(s.Lag.Seconds()), Paused: s.Paused, Fault: faultOf(o), oldestDue: s.OldestDue,
		BreakerOpen: len(openBreakers(o.Reports)), breaker: breakerText(w.app.Screen(), o.Reports),
	}
	if before, ok := w.before[o.Topic]; ok && o.Err == nil {
		perSecond := func(was, is int64) *float64 {
			return new(output.Rounded(float64(is-was) / now.Sub(w.looked).Seconds()))
		}
		l.TimersPerS, l.DeadPerS = perSecond(before.Total, s.Total), perSecond(before.Dead, s.Dead)
	}
	return l
}
