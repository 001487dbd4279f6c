package metrics

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Backlog is the backlog of a topic.
type Backlog struct {
	Topic              string        `json:"topic"`
	Due, Pending, Dead int64         // timers
	Parked             int64         `json:"parked,omitempty"`     // those that wait for others of their key
	Running            int64         `json:"running,omitempty"`    // of Pending, those that a handler has
	Retrying           int64         `json:"retrying,omitempty"`   // of Pending, those that wait for another attempt
	Paused             bool          `json:"paused,omitempty"`     // on all nodes
	Unreadable         bool          `json:"unreadable,omitempty"` // its keys cannot be read; the other fields are 0
	Fault              string        `json:"fault,omitempty"`      // the class of the error if Unreadable; see ClassOf
	OldestDue          time.Duration // since the first unclaimed timer became due; 0: none is due
	Nodes              int64         // that listen; -1: unknown
	Ahead              []int64       `json:"ahead,omitempty"` // timers that become due within each of Windows
}

// Add adds a shard of the topic. Of what cannot be added up it keeps the worst, but a node
// listens for some of the shards only, so that Nodes is the largest. Nothing is known of a topic
// of which a shard cannot be read.
func (b *Backlog) Add(shard Backlog) {
	if b.Unreadable || shard.Unreadable {
		*b = Backlog{Topic: b.Topic, Unreadable: true, Fault: cmp.Or(b.Fault, shard.Fault)}
		return
	}
	b.Due, b.Pending, b.Dead, b.Parked = b.Due+shard.Due, b.Pending+shard.Pending, b.Dead+shard.Dead, b.Parked+shard.Parked
	b.Running, b.Retrying, b.Paused = b.Running+shard.Running, b.Retrying+shard.Retrying, b.Paused || shard.Paused
	b.OldestDue, b.Nodes = max(b.OldestDue, shard.OldestDue), max(b.Nodes, shard.Nodes)
	ahead := slices.Clone(b.Ahead)
	for i, n := range shard.Ahead[:min(len(ahead), len(shard.Ahead))] {
		ahead[i] += n
	}
	b.Ahead = ahead
}

// Windows are the spans of a forecast, from now on.
var Windows = [...]struct {
	Name string
	Span time.Duration
}{{"1m", time.Minute}, {"1h", time.Hour}, {"24h", 24 * time.Hour}}

// Queue is the backlog of a queue.
type Queue struct {
	Name                  string
	Depth, InFlight, Dead int64
	Oldest                time.Duration // since the message that waits for longest was published; 0: none, or unknown
	Nodes                 int64         // that listen; -1: unknown
}

// GateState is a gate that is in use.
type GateState struct {
	Name    string
	Held    time.Duration // the age of the turn; 0: the gate is free, or unknown
	Waiting int64         // requests
}

// Schedules is how the recurring schedules of all prefixes are attended.
type Schedules struct {
	Count, Beats int64         // Beats below 0: unknown
	Overdue      time.Duration // of the run that waits longest for a beat
}

const (
	// freshSchedules is how long a reading of schedules, queues and gates is reported
	// without another. Every process reads them for itself.
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

// readings are what a node reads from Redis for its metrics.
type readings struct {
	topics    *reading[Backlog]
	queues    *reading[Queue]
	schedules *reading[Schedules]
	gates     *reading[GateState]
}

func newReadings(ctx context.Context, n *Node) readings {
	return readings{
		newReading(ctx, n.Backlog, lifetimeOf),
		newReading(ctx, n.Queues, func(all []Queue) time.Duration { return Lifetime(len(all)) }),
		newReading(ctx, one(n.Schedules), func([]Schedules) time.Duration { return freshSchedules }),
		newReading(ctx, n.Gates, func(all []GateState) time.Duration { return max(freshSchedules, Lifetime(len(all))) }),
	}
}

// found is what was read.
type found struct {
	topics    []Backlog
	topicsAt  time.Time // zero: topics were never read
	queues    []Queue
	schedules []Schedules
	gates     []GateState
}

// get reads what is too old, all at the same time. What was read before an outage says
// nothing about beats and gates now.
func (r readings) get(ctx context.Context) (f found) {
	r.topics.begin()
	r.queues.begin()
	r.schedules.begin()
	r.gates.begin()
	f.topics, f.topicsAt = r.topics.get(ctx)
	f.queues, _ = r.queues.get(ctx)
	if schedules, at := r.schedules.get(ctx); time.Since(at) <= 3*freshSchedules {
		f.schedules = schedules
	}
	if gates, at := r.gates.get(ctx); time.Since(at) <= 3*max(freshSchedules, Lifetime(len(gates))) {
		f.gates = gates
	}
	return f
}

func (r readings) wait() {
	r.topics.wait()
	r.queues.wait()
	r.schedules.wait()
	r.gates.wait()
}
