// Package forecast says what timers and recurring schedules will ask of the nodes: all load
// that is known is stored. It asks for what clients answer anyway, so it works on a Redis
// and through a node. It writes nothing.
package forecast

import (
	"context"
	"iter"
	"time"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Client is what a forecast is read from. A wakebell.Client and the Client of package
// remote implement it.
type Client interface {
	Topics(ctx context.Context, discover bool, p wakebelltype.Page) iter.Seq2[string, error]
	Overview(ctx context.Context, topics ...string) ([]wakebelltype.Overview, error)
	CountDue(ctx context.Context, topic string, from time.Time, step time.Duration, n int) ([]int64, error)
	Throughput(ctx context.Context, topic string, since time.Duration) (wakebelltype.Throughput, error)
}

// Options say what is forecast.
type Options struct {
	Topics []string      // empty: all, of which the 1,000 with the most timers are looked at
	For    time.Duration // from now on, a minute to 366 days; 0: 24 h
	Bars   int           // 1 to 200; 0: 48. A bar has at least a minute.
}

// Forecast is what is to be done.
type Forecast struct {
	From time.Time     // the minute that has begun, by the clock of Redis
	Step time.Duration // of a bar, in whole minutes
	Bars []Bar

	Overdue int64 // timers that were due before From
	Total   int64 // timers and runs in all bars
	Peak    Peak

	Topics []Topic // those that have something to do, the most first, at most 100
	More   int     // topics that were not looked at, or are not in Topics

	// Unread says what could not be read, and why.
	Unread []string
}

// Bar is what is due in a span.
type Bar struct {
	At     time.Time // when it begins
	Timers int64     // that are stored; one that runs counts when its lease expires
	Runs   int64     // of recurring schedules
}

// Peak is the minute in which most is due.
type Peak struct {
	At    time.Time // zero: nothing is due
	Count int64
	// Exact is false if there may be a minute with more: not all were counted.
	Exact bool
}

// Topic is what is to be done on a topic.
type Topic struct {
	Name    string
	Overdue int64 // timers that were due before Forecast.From
	Total   int64 // timers and runs
	Peak    Peak

	// Best is the most that nodes ended in a minute of the last 24 h, at BestAt; 0: they
	// ended none, or no counts are written. Behind says that they were late then, so that
	// Best is about what they can do; else they might do more.
	Best   int64
	BestAt time.Time
	Behind bool

	// Limit is the RateLimit in force on the topic, per minute; 0: none.
	Limit float64

	Warnings []Warning
}

// Warning is that something that is due will wait.
type Warning struct {
	Cause Cause
	From  time.Time     // when timers begin to wait for a minute or longer
	Until time.Time     // when they no longer do
	Late  time.Duration // the longest wait
}

// Cause is why something will wait.
type Cause string

// The causes.
const (
	CauseNodes Cause = "nodes"      // a minute has more, or more is overdue, than the nodes ended in one: Topic.Best
	CauseRate  Cause = "rate-limit" // the RateLimit of the topic
)

const (
	defaultFor  = 24 * time.Hour
	longest     = 366 * 24 * time.Hour
	defaultBars = 48
	mostBars    = 200

	mostTopics    = 1000    // that are counted
	listedTopics  = 100     // that a forecast describes one by one
	mostSchedules = 2000    // that are projected
	mostMinutes   = 100_000 // minutes that are counted one by one to find peaks
	mostSteps     = 1500    // of a CountDue
)

// defaults checks the options and fills in what is not set.
func (o Options) defaults() (Options, error) {
	if o.For == 0 {
		o.For = defaultFor
	}
	if o.Bars == 0 {
		o.Bars = defaultBars
	}
	if o.For < time.Minute || o.For > longest {
		return o, argument.Invalid("For", "%v, want 1m to 8784h", o.For)
	}
	if o.Bars < 1 || o.Bars > mostBars {
		return o, argument.Invalid("Bars", "%d, want 1 to %d", o.Bars, mostBars)
	}
	return o, nil
}

// Of forecasts what is due on topics. It counts at most 1,000 topics and 100,000 single
// minutes, and projects at most 2,000 recurring schedules. s may be nil: then none are.
// Errors wrap wakebell.ErrInvalid for options out of range, or are those of Topics,
// Overview and CountDue; what else cannot be read is in Unread.
func Of(ctx context.Context, c Client, s recurring.Operator, o Options) (Forecast, error) {
	o, err := o.defaults()
	if err != nil {
		return Forecast{}, err
	}
	minutes := int((o.For + time.Minute - 1) / time.Minute)
	perBar := (minutes + o.Bars - 1) / o.Bars
	l := &load{
		ctx: ctx, client: c,
		perBar: perBar, bars: (minutes + perBar - 1) / perBar, left: mostMinutes,
		topics: map[string]*topicLoad{},
	}
	if err := l.read(o.Topics); err != nil {
		return Forecast{}, err
	}
	if s != nil {
		l.project(s, o.Topics)
	}
	f, err := l.forecast()
	if err != nil {
		return Forecast{}, err
	}
	return f, ctx.Err()
}
