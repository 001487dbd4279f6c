package dashboard

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/dashboard/internal/charts"
	"github.com/wakebell/wakebell/dashboard/internal/cluster"
	"github.com/wakebell/wakebell/dashboard/internal/fan"
	"github.com/wakebell/wakebell/dashboard/internal/joined"
	"github.com/wakebell/wakebell/forecast"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	// pastTopics bounds the topics that the charts of the overview sum up: each is a read.
	pastTopics = 1000
	// attemptsShown bounds the attempts that a page shows.
	attemptsShown = 20
	// attemptsSearched are the attempts of a topic in which those of a recurring schedule
	// are looked for.
	attemptsSearched = 500
)

// throughput returns the counts of a topic for so long. They are cached: nodes write theirs
// every few seconds.
func (d *Dashboard) throughput(ctx context.Context, topic string, since time.Duration) (wakebelltype.Throughput, error) {
	return d.past.Get(ctx, since.String()+" topic "+topic, func(ctx context.Context) (wakebelltype.Throughput, error) {
		return d.op.Timers.Throughput(ctx, topic, since)
	})
}

// allPast is what happened on the busiest topics together.
type allPast struct {
	sum    wakebelltype.Throughput
	topics int
}

// allThroughput returns the sum of all topics, or of the pastTopics busiest. A topic that cannot
// be read counts as none: the overview lists it. A page waits for totalsWait at most.
func (d *Dashboard) allThroughput(ctx context.Context, t *cluster.Counts, since time.Duration) (allPast, error) {
	return d.sums.Soon(ctx, totalsWait, since.String(), func(ctx context.Context) (all allPast, err error) {
		names := t.Busiest(pastTopics, func(wakebelltype.Overview) bool { return true })
		var mu sync.Mutex
		all.topics, err = fan.Out(ctx, len(names), func(i int) {
			one, err := d.op.Timers.Throughput(ctx, names[i], since)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
			case all.sum.Points == nil:
				all.sum = one
			default:
				addPoints(all.sum.Points, one.Points, all.sum.Step)
			}
		})
		if ctx.Err() != nil {
			return all, context.Cause(ctx)
		}
		return all, err
	})
}

// addPoints adds the counts of the same steps. Readings of two minutes differ by one.
func addPoints(to, from []wakebelltype.ThroughputCounts, step time.Duration) {
	if len(to) == 0 || len(from) == 0 {
		return
	}
	shift := int(from[0].At.Sub(to[0].At) / step)
	for i, p := range from {
		if at := i + shift; at >= 0 && at < len(to) {
			to[at].Add(p)
		}
	}
}

// queueThroughput is throughput for a queue.
func (d *Dashboard) queueThroughput(ctx context.Context, name string, since time.Duration) (wakebelltype.Throughput, error) {
	return d.past.Get(ctx, since.String()+" queue "+name, func(ctx context.Context) (wakebelltype.Throughput, error) {
		return d.op.Queues.Throughput(ctx, d.queueKeys(name), since)
	})
}

// chartData is a chart of what happened, and lateChart one of how late timers began.
type (
	chartData struct {
		charts.Past
		Ranges []rangeLink // that can be chosen
	}
	lateChart = charts.Late
)

// rangeLink chooses how far back the charts of a page reach.
type rangeLink struct {
	Text, Link string
	Chosen     bool
}

func newChart(t wakebelltype.Throughput) chartData { return chartData{Past: charts.NewPast(t)} }

func newLateChart(t wakebelltype.Throughput) lateChart { return charts.NewLate(t) }

// pastOf returns how far back the charts of a page reach.
func pastOf(r *request) time.Duration { return charts.RangeOf(r.get("range")).Span }

// pastDefault is how far back a chart reaches that has no choice.
var pastDefault = charts.Default.Span

// ranged is newChart with links to the page with other ranges.
func (d *Dashboard) ranged(r *request, t wakebelltype.Throughput, path string, params ...string) chartData {
	c := newChart(t)
	for _, each := range charts.Ranges {
		c.Ranges = append(c.Ranges, rangeLink{each.Name, d.link(path, append(slices.Clone(params), "range", each.Name)...), each == charts.RangeOf(r.get("range"))})
	}
	return c
}

// aheadData is a chart of what will be due.
type aheadData struct {
	Reading  bool // it is being counted
	Err      error
	Forecast forecast.Forecast
	charts.Plot
	Runs     int64 // of recurring schedules
	Warnings []aheadWarning
}

// aheadWarning is a warning about a topic.
type aheadWarning struct {
	Topic forecast.Topic
	forecast.Warning
}

// ahead forecasts the next 24 hours of a topic, or of all. A page does not wait for long: many
// topics take seconds, and the next look has what was counted meanwhile.
func (d *Dashboard) ahead(ctx context.Context, topics ...string) aheadData {
	f, err := d.future.Soon(ctx, totalsWait, strings.Join(topics, ""), func(ctx context.Context) (forecast.Forecast, error) {
		return forecast.Of(ctx, d.op.Timers, d.op.Schedules, forecast.Options{Topics: topics, Bars: charts.MaxBars})
	})
	if err != nil {
		reading := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
		return aheadData{Reading: reading, Err: err}
	}
	return newAhead(f)
}

// newAhead draws a forecast: timers, and the runs of recurring schedules on top of them.
func newAhead(f forecast.Forecast) aheadData {
	a := aheadData{Forecast: f}
	a.Plot, a.Runs = charts.NewAhead(f)
	for _, t := range f.Topics {
		for _, w := range t.Warnings {
			a.Warnings = append(a.Warnings, aheadWarning{t, w})
		}
	}
	slices.SortStableFunc(a.Warnings, func(a, b aheadWarning) int { return cmp.Compare(b.Late, a.Late) })
	a.Warnings = a.Warnings[:min(cluster.Worst, len(a.Warnings))]
	return a
}

// attempts returns the newest recorded attempts of a topic, or of one timer, the newest
// first.
func (d *Dashboard) attempts(ctx context.Context, topic, id string) ([]wakebelltype.Attempt, error) {
	return newest(d.op.Timers.History(ctx, topic, wakebelltype.HistoryFilter{ID: id, Last: attemptsShown}, wakebelltype.Page{}))
}

// newest returns attempts in the reverse of their order.
func newest(attempts iter.Seq2[wakebelltype.Attempt, error]) (all []wakebelltype.Attempt, err error) {
	for a, err := range attempts {
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	slices.Reverse(all)
	return all, nil
}

// attemptsOfRuns returns the attempts of the runs of a recurring schedule among the
// newest of its topic, the newest first.
func (d *Dashboard) attemptsOfRuns(ctx context.Context, topic, schedule string) (all []wakebelltype.Attempt, err error) {
	for a, err := range d.op.Timers.History(ctx, topic, wakebelltype.HistoryFilter{Last: attemptsSearched}, wakebelltype.Page{}) {
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(a.ID, d.prefix+schedule+"@") {
			all = append(all, a)
		}
	}
	slices.Reverse(all)
	return all[:min(attemptsShown, len(all))], nil
}

// gonePage shows what is recorded of a timer that is no longer stored.
func (d *Dashboard) gonePage(ctx context.Context, r *request, topic, id string, gone error) (page, error) {
	if !errors.Is(gone, wakebell.ErrNotFound) {
		return page{}, gone
	}
	attempts, err := d.attempts(ctx, topic, id)
	report, joined := d.report(ctx, topic, id), d.joined(ctx, r, topic, id, nil, true)
	if err != nil || len(attempts) == 0 && report.Progress == nil && report.Result == nil && joined.View == nil {
		return page{}, gone
	}
	return page{
		template: "gone", title: "Timer " + id, section: "topics",
		data: goneData{attemptsData{Topic: topic, ID: id, Attempts: attempts}, report, joined},
	}, nil
}

type goneData struct {
	attemptsData
	Report reportData
	Joined joinedData
}

// joiner returns what reads joins; false: the operators of the dashboard do not.
func (d *Dashboard) joiner() (joined.Client, bool) {
	c, ok := d.op.Timers.(joined.Client)
	return c, ok
}

// joinedData is what a timer has to do with joins.
type joinedData struct {
	View        *joined.View // of its join; nil: it has none, or it cannot be read
	First, Next string       // addresses of pages of its parts
	Unread      bool         // it has a join, which the operators of the dashboard do not read
	Err         error        // why it cannot be read
	Waiters     []joined.Waiter
}

// joined reads the join of a timer with these headers, or of one that has ended, and the joins
// of which it is a part.
func (d *Dashboard) joined(ctx context.Context, r *request, topic, id string, headers wakebell.Headers, ended bool) (data joinedData) {
	_, has := headers.Get(wakebelltype.JoinHeader)
	c, ok := d.joiner()
	if !ok {
		data.Unread = has
		return data
	}
	data.Waiters = joined.Waiters(ctx, c, headers, d.prefix)
	if !has && !ended {
		return data
	}
	v, err := joined.Read(ctx, c, d.op.Timers, d.states(ctx), topic, id, r.get("parts"))
	if err != nil {
		if !errors.Is(err, wakebell.ErrNotFound) {
			data.Err = err
		}
		return data
	}
	data.View = &v
	if v.Next != "" {
		data.Next = d.link("timer", "topic", topic, "id", id, "parts", v.Next)
	}
	if r.get("parts") != "" {
		data.First = d.link("timer", "topic", topic, "id", id)
	}
	return data
}

// attemptsData are the attempts of a topic, of one timer, or of a queue.
type attemptsData struct {
	Topic, ID string // empty of a queue
	Attempts  []wakebelltype.Attempt
	Err       error // why they cannot be read
}

// node shortens the name of a node, host/pid/name, to what is enough to tell nodes apart.
func node(name string) string {
	host, rest, found := strings.Cut(name, "/")
	if !found {
		return name
	}
	pid, _, _ := strings.Cut(rest, "/")
	return host + "/" + pid
}
