package metrics

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// Backlog is the backlog of a topic.
type Backlog struct {
	Topic              string        `json:"topic"`
	Due, Pending, Dead int64         // timers
	Parked             int64         `json:"parked,omitempty"`     // those that wait for others of their key
	Paused             bool          `json:"paused,omitempty"`     // on all nodes
	Unreadable         bool          `json:"unreadable,omitempty"` // its keys cannot be read; the other fields are 0
	OldestDue          time.Duration // since the first unclaimed timer became due; 0: none is due
	Nodes              int64         // that listen; -1: unknown
	Ahead              []int64       `json:"ahead,omitempty"` // timers that become due within each of Windows
}

// Windows are the spans of a forecast, from now on.
var Windows = [...]struct {
	Name string
	Span time.Duration
}{{"1m", time.Minute}, {"1h", time.Hour}, {"24h", 24 * time.Hour}}

// Queue is the length of a queue.
type Queue struct {
	Name                  string
	Depth, InFlight, Dead int64
}

// Schedules is how the recurring schedules of all prefixes are attended.
type Schedules struct {
	Count, Beats int64         // Beats below 0: unknown
	Overdue      time.Duration // of the run that waits longest for a beat
}

const (
	// freshSchedules is how long a reading of schedules is reported without another. Every
	// process reads them for itself.
	freshSchedules = 10 * time.Second
	// fresh is how long a reading is reported without another.
	fresh = 5 * time.Second
	// perTopic bounds the load of many topics: 200 topics are read in a second.
	perTopic = 5 * time.Millisecond
	// waitForReading bounds how long a collection waits for a reading, and
	// readingLimit the reading itself.
	waitForReading = time.Second
	readingLimit   = 10 * time.Second
)

// Lifetime returns how long the backlog of so many topics is reported before it is
// read again.
func Lifetime(topics int) time.Duration { return max(fresh, time.Duration(topics)*perTopic) }

func lifetimeOf(all []Backlog) time.Duration { return Lifetime(len(all)) }

// reading caches what is read from Redis when metrics are collected. One goroutine
// reads at a time, and a collection waits for it until its context ends: then it
// reports the last result.
type reading[T any] struct {
	ctx      context.Context //nolint:containedctx // of the goroutine that reads
	read     func(context.Context) ([]T, error)
	lifetime func([]T) time.Duration
	running  sync.WaitGroup

	mu     sync.Mutex
	result []T
	at     time.Time     // of the result; zero: there is none
	asked  time.Time     // when the last reading ended, or failed
	done   chan struct{} // closed at the end of the reading in progress; nil: none is
}

func newReading[T any](ctx context.Context, read func(context.Context) ([]T, error), lifetime func([]T) time.Duration) *reading[T] {
	return &reading[T]{ctx: ctx, read: read, lifetime: lifetime}
}

// get returns the last result and its instant. If it is too old, it is renewed, for
// which get waits until ctx ends.
func (r *reading[T]) get(ctx context.Context) ([]T, time.Time) {
	if done := r.begin(); done != nil {
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.result, r.at
}

// begin starts a reading if one is due. Done is closed at the end of the reading in
// progress; nil: there is none.
func (r *reading[T]) begin() (done <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	switch {
	case r.read == nil, r.ctx.Err() != nil, !r.asked.IsZero() && now.Sub(r.asked) < r.lifetime(r.result):
		return nil
	case r.done != nil:
		return r.done
	}
	r.done = make(chan struct{})
	r.running.Go(r.renew)
	return r.done
}

func (r *reading[T]) renew() {
	ctx, cancel := context.WithTimeout(r.ctx, readingLimit)
	defer cancel()
	began := time.Now()
	result, err := r.read(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.result, r.at = result, began
	}
	r.asked = time.Now()
	close(r.done)
	r.done = nil
}

func (r *reading[T]) wait() { r.running.Wait() }

func (m *Metrics) observeBacklog(ctx context.Context, to metric.Observer, o *observers, topics *reading[Backlog]) {
	found, at := topics.get(ctx)
	if at.IsZero() {
		return
	}
	all, oldest, nodes, ahead := sums{}, map[*Topic]time.Duration{}, map[*Topic]int64{}, [len(Windows)]int64{}
	paused, unreadable := map[*Topic]int64{}, int64(0)
	for _, b := range found {
		if b.Unreadable {
			unreadable++
			continue
		}
		t := m.Topic(b.Topic)
		all.add(o.due, t, b.Due)
		all.add(o.parked, t, b.Parked)
		if paused[t] = max(paused[t], 0); b.Paused {
			paused[t] = 1
		}
		all.add(o.pending, t, b.Pending)
		all.add(o.deadStored, t, b.Dead)
		oldest[t] = max(oldest[t], b.OldestDue)
		for i, n := range b.Ahead[:min(len(ahead), len(b.Ahead))] {
			ahead[i] += n
		}
		if least, seen := nodes[t]; b.Nodes >= 0 && (!seen || b.Nodes < least) { // of folded topics and shards the worst
			nodes[t] = b.Nodes
		}
	}
	all.report(to)
	for t, d := range oldest {
		to.ObserveFloat64(o.oldest, d.Seconds(), t.only().observe...)
	}
	for t, n := range nodes {
		to.ObserveInt64(o.nodes, n, t.only().observe...)
	}
	for t, is := range paused {
		to.ObserveInt64(o.paused, is, t.only().observe...)
	}
	to.ObserveInt64(o.unreadable, unreadable)
	for i, w := range Windows {
		to.ObserveInt64(o.forecast, ahead[i], metric.WithAttributes(window.String(w.Name)))
	}
	to.ObserveFloat64(o.age, time.Since(at).Seconds())
}

func (m *Metrics) observeQueues(ctx context.Context, to metric.Observer, o *observers, queues *reading[Queue]) {
	found, _ := queues.get(ctx)
	all := sums{}
	for _, q := range found {
		t := m.Queue(q.Name)
		all.add(o.depth, t, q.Depth)
		all.add(o.inFlight, t, q.InFlight)
		all.add(o.queueDead, t, q.Dead)
	}
	all.report(to)
}

// one makes a reading of a single value that of a list.
func one[T any](read func(context.Context) (T, error)) func(context.Context) ([]T, error) {
	if read == nil {
		return nil
	}
	return func(ctx context.Context) ([]T, error) {
		value, err := read(ctx)
		return []T{value}, err
	}
}

func observeSchedules(ctx context.Context, to metric.Observer, o *observers, schedules *reading[Schedules]) {
	found, at := schedules.get(ctx)
	// What was read before an outage says nothing about beats now.
	if at.IsZero() || time.Since(at) > 3*freshSchedules {
		return
	}
	for _, s := range found {
		to.ObserveInt64(o.schedules, s.Count)
		to.ObserveFloat64(o.overdue, s.Overdue.Seconds())
		if s.Beats >= 0 {
			to.ObserveInt64(o.beats, s.Beats)
		}
	}
}
