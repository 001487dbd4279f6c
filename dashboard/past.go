package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/dashboard/internal/cluster"
	"github.com/wakebell/wakebell/dashboard/internal/fan"
	"github.com/wakebell/wakebell/dashboard/internal/show"
	"github.com/wakebell/wakebell/forecast"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	pastFor  = 6 * time.Hour // that charts show
	pastBars = 72            // of a chart
	// pastTopics bounds the topics that the charts of the overview sum up: each is a read.
	pastTopics = 1000
	// attemptsShown bounds the attempts that a page shows.
	attemptsShown = 20
	// attemptsSearched are the attempts of a topic in which those of a recurring schedule
	// are looked for.
	attemptsSearched = 500
)

// throughput returns the counts of a topic, by minute. They are cached: nodes write
// theirs every few seconds.
func (d *Dashboard) throughput(ctx context.Context, topic string) (wakebelltype.Throughput, error) {
	return d.past.Get(ctx, topic, func(ctx context.Context) (wakebelltype.Throughput, error) {
		return d.op.Timers.Throughput(ctx, topic, pastFor)
	})
}

// allPast is what happened on the busiest topics together.
type allPast struct {
	sum    wakebelltype.Throughput
	topics int
}

// allThroughput returns the sum of all topics, or of the pastTopics busiest. A topic that cannot
// be read counts as none: the overview lists it. A page waits for totalsWait at most.
func (d *Dashboard) allThroughput(ctx context.Context, t *cluster.Counts) (allPast, error) {
	return d.sums.Soon(ctx, totalsWait, "", func(ctx context.Context) (all allPast, err error) {
		names := t.Busiest(pastTopics, func(wakebelltype.Overview) bool { return true })
		var mu sync.Mutex
		all.topics, err = fan.Out(ctx, len(names), func(i int) {
			one, err := d.op.Timers.Throughput(ctx, names[i], pastFor)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
			case all.sum.Points == nil:
				all.sum = one
			default:
				addPoints(all.sum.Points, one.Points)
			}
		})
		if ctx.Err() != nil {
			return all, context.Cause(ctx)
		}
		return all, err
	})
}

// addPoints adds the counts of the same minutes. Readings of two minutes differ by one.
func addPoints(to, from []wakebelltype.ThroughputCounts) {
	if len(to) == 0 || len(from) == 0 {
		return
	}
	shift := int(from[0].At.Sub(to[0].At) / time.Minute)
	for i, p := range from {
		if at := i + shift; at >= 0 && at < len(to) {
			to[at].Add(p)
		}
	}
}

// queueThroughput is throughput for a queue.
func (d *Dashboard) queueThroughput(ctx context.Context, name string) (wakebelltype.Throughput, error) {
	return d.past.Get(ctx, "queue\x00"+name, func(ctx context.Context) (wakebelltype.Throughput, error) {
		return d.op.Queues.Throughput(ctx, d.queueKeys(name), pastFor)
	})
}

// chartPart is a part of a bar of a chart, in hundredths of its width and height.
type chartPart struct{ Name, X, Y, Width, Height string }

// chartData is a chart of what happened, and its sums.
type chartData struct {
	Queue bool
	Label string
	Parts []chartPart
	Sum   wakebelltype.ThroughputCounts
	Most  string // that a bar stands for, as a rate
}

// newChart stacks what was handled, what failed and what died, in bars of equal times.
func newChart(t wakebelltype.Throughput) chartData {
	var c chartData
	each := max(1, (len(t.Points)+pastBars-1)/pastBars)
	var bars []wakebelltype.ThroughputCounts
	most := int64(0)
	for from := 0; from < len(t.Points); from += each {
		var bar wakebelltype.ThroughputCounts
		for _, p := range t.Points[from:min(from+each, len(t.Points))] {
			bar.Add(p)
		}
		bars = append(bars, bar)
		most = max(most, bar.Handled+bar.Failed+bar.Dead)
		c.Sum.Add(bar)
	}
	c.Label = fmt.Sprintf("Last 6 hours: %s handled, %s failed, %s dead",
		show.Count(c.Sum.Handled), show.Count(c.Sum.Failed), show.Count(c.Sum.Dead))
	if most == 0 {
		return c
	}
	c.Most = show.Count(most) + " in " + show.Span(time.Duration(each)*t.Step)
	width := 100 / float64(len(bars))
	for i, bar := range bars {
		c.Parts = append(c.Parts, stack(i, width, most, []part{{"handled", bar.Handled}, {"failed", bar.Failed}, {"dead", bar.Dead}})...)
	}
	return c
}

// part is a number in a bar.
type part struct {
	name string
	n    int64
}

// stack puts the parts of a bar on each other, the first at the bottom.
func stack(bar int, width float64, most int64, parts []part) (drawn []chartPart) {
	bottom := 100.0
	for _, part := range parts {
		if part.n <= 0 {
			continue
		}
		height := max(2, 100*float64(part.n)/float64(most)) // one of many stays visible
		bottom = max(0, bottom-height)
		drawn = append(drawn, chartPart{part.name, text2(float64(bar) * width), text2(bottom), text2(width * 0.8), text2(height)})
	}
	return drawn
}

// lateChart is a chart of how late timers began.
type lateChart struct {
	Label       string
	Parts       []chartPart
	Started     int64
	Mean, Worst time.Duration
}

// newLateChart draws the worst and the mean lateness in bars of equal times. The scale is
// logarithmic, so that one late timer does not hide the others.
func newLateChart(t wakebelltype.Throughput) (c lateChart) {
	each := max(1, (len(t.Points)+pastBars-1)/pastBars)
	var bars []wakebelltype.ThroughputCounts
	var sum wakebelltype.ThroughputCounts
	for part := range slices.Chunk(t.Points, each) {
		var bar wakebelltype.ThroughputCounts
		for _, p := range part {
			bar.Add(p)
		}
		sum.Add(bar)
		bars = append(bars, bar)
	}
	c.Started, c.Mean, c.Worst = sum.Started, sum.MeanLateness(), sum.MaxLateness
	c.Label = fmt.Sprintf("Lateness of the last 6 hours: %s on average, %s at worst", show.Span(c.Mean), show.Span(c.Worst))
	scale := func(d time.Duration) float64 { return math.Log1p(d.Seconds() * 1000) }
	if c.Started == 0 {
		return c
	}
	highest, width := max(scale(c.Worst), scale(time.Millisecond)), 100/float64(len(bars))
	for i, bar := range bars {
		if bar.Started == 0 {
			continue
		}
		for _, part := range []struct {
			name string
			d    time.Duration
		}{{"worst", bar.MaxLateness}, {"mean", bar.MeanLateness()}} {
			height := min(100, max(2, 100*scale(part.d)/highest))
			c.Parts = append(c.Parts, chartPart{part.name, text2(float64(i) * width), text2(100 - height), text2(width * 0.8), text2(height)})
		}
	}
	return c
}

// aheadData is a chart of what will be due.
type aheadData struct {
	Reading  bool // it is being counted
	Err      error
	Forecast forecast.Forecast
	Label    string
	Parts    []chartPart
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
		return forecast.Of(ctx, d.op.Timers, d.op.Schedules, forecast.Options{Topics: topics, Bars: pastBars})
	})
	if err != nil {
		reading := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
		return aheadData{Reading: reading, Err: err}
	}
	return newAhead(f)
}

// newAhead draws a forecast: timers, and the runs of recurring schedules on top of them.
func newAhead(f forecast.Forecast) aheadData {
	a := aheadData{Forecast: f, Label: fmt.Sprintf("Next 24 hours: %s due", show.Count(f.Total))}
	most := int64(0)
	for _, b := range f.Bars {
		most = max(most, b.Timers+b.Runs)
		a.Runs += b.Runs
	}
	width := 100 / float64(len(f.Bars))
	for i, b := range f.Bars {
		a.Parts = append(a.Parts, stack(i, width, most, []part{{"handled", b.Timers}, {"runs", b.Runs}})...)
	}
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
func (d *Dashboard) gonePage(ctx context.Context, topic, id string, gone error) (page, error) {
	if !errors.Is(gone, wakebell.ErrNotFound) {
		return page{}, gone
	}
	attempts, err := d.attempts(ctx, topic, id)
	if err != nil || len(attempts) == 0 {
		return page{}, gone
	}
	return page{
		template: "gone", title: "Timer " + id, section: "topics",
		data: attemptsData{Topic: topic, ID: id, Attempts: attempts},
	}, nil
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
