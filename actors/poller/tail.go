package poller

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/messages/exchange"
)

// Events brings what happens on a topic to who watches it.
type Events interface {
	// PublishEvents sends a batch, to nobody in particular. It may fail, or
	// take long; nobody waits for it.
	PublishEvents(ctx context.Context, topic string, events []exchange.Event) error
}

const (
	// publishEvery is how long events gather before they are sent.
	publishEvery = 50 * time.Millisecond
	// MaxPending bounds the events of a topic that gather meanwhile: what
	// happens beyond is counted, not told.
	MaxPending = 1000
	// PublishAtOnce bounds the events of one message.
	PublishAtOnce = 100
	// MaxWatch bounds for how long one hint has events told.
	MaxWatch = time.Minute
	// LastPublish bounds the sending of the last events when a runtime stops.
	LastPublish = time.Second

	maxEventID   = 512
	maxEventText = 256
)

// feed gathers the events of a topic. Pollers ask it whether anybody watches,
// which costs nothing, and append; they never wait.
type feed struct {
	topic   string
	Watched atomic.Bool // somebody watches, or early is open: changed under mu

	mu      sync.Mutex
	early   early
	told    bool      // somebody watches
	until   time.Time // when nobody watches any more, unless they say so again
	pending []exchange.Event
	missed  int
	greet   bool // tell that the node is there
	failing bool // the last batch could not be sent
}

// add appends an event of a timer, or counts it as missed.
func (f *feed) add(e exchange.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case !f.told:
		f.addEarly(e)
	case len(f.pending) == MaxPending:
		f.missed++
	default:
		f.pending = append(f.pending, trimmed(e))
	}
}

// trimmed is an event that can be kept: ids share the memory of a whole reply.
func trimmed(e exchange.Event) exchange.Event {
	e.ID, e.Text = strings.Clone(text.Cut(e.ID, maxEventID)), strings.Clone(text.Cut(e.Text, maxEventText))
	return e
}

// miss counts events that could not be sent.
func (f *feed) miss(events []exchange.Event) {
	for _, e := range events {
		switch e.Kind {
		case exchange.EventNode:
			f.greet = true
		case exchange.EventMissed:
			f.missed += e.Missed
		default:
			f.missed++
		}
	}
}

// take empties the feed; over says that nobody watches any more.
func (f *feed) take(now time.Time) (events []exchange.Event, over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.greet {
		f.greet = false
		events = append(events, exchange.Event{Kind: exchange.EventNode})
	}
	events = append(events, f.pending...)
	if f.missed > 0 {
		events = append(events, exchange.Event{Kind: exchange.EventMissed, Missed: f.missed})
	}
	f.pending, f.missed = f.pending[:0], 0
	if now.After(f.until) {
		f.told = false
		f.Watched.Store(f.early.open)
		f.pending = nil
		return events, true
	}
	return events, false
}

// Tail sends the events of the topics that somebody watches. Its goroutine is
// there only while there are any.
type Tail struct {
	Events Events // nil: nobody can watch
	Node   string
	Log    *slog.Logger
	Io     *sync.WaitGroup

	mu      sync.Mutex
	watched []*feed
	cancel  context.CancelFunc // ends the goroutine; nil: there is none
	stopped bool
}

// Watch has the events of a topic told for a while, to a watcher that has been
// subscribed for some time.
func (t *Tail) Watch(f *feed, d, subscribed time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Events == nil || t.stopped || d <= 0 {
		return
	}
	f.mu.Lock()
	f.until, f.greet = time.Now().Add(min(d, MaxWatch)), true
	f.Watched.Store(true)
	f.recall(time.Now().Add(-subscribed))
	f.told = true
	f.mu.Unlock()
	if !slices.Contains(t.watched, f) {
		t.watched = append(t.watched, f)
	}
	if t.cancel == nil { // else it runs
		//nolint:forbidigo // the runtime's life is its own: stop ends it
		ctx, cancel := context.WithCancel(context.Background())
		t.cancel = cancel
		t.Io.Go(func() { t.run(ctx) })
	}
}

// Stop has the last events sent and ends the goroutine, which it does not
// wait for.
func (t *Tail) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	if t.cancel != nil {
		t.cancel()
	}
}

func (t *Tail) run(ctx context.Context) {
	tick := time.NewTicker(publishEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if t.send(ctx) == 0 {
				return
			}
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), LastPublish)
			defer cancel()
			t.send(last)
			return
		}
	}
}

// batch is what a feed had gathered.
type batch struct {
	feed   *feed
	events []exchange.Event
}

// send sends what gathered, and returns how many topics are watched still; at
// 0 the goroutine has to end.
func (t *Tail) send(ctx context.Context) (left int) {
	batches, left := t.collect(time.Now())
	for _, b := range batches {
		for part := range slices.Chunk(b.events, PublishAtOnce) {
			t.publish(ctx, b.feed, part)
		}
	}
	return left
}

// collect empties the feeds and lets those go that nobody watches any more.
func (t *Tail) collect(now time.Time) (batches []batch, left int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watched = slices.DeleteFunc(t.watched, func(f *feed) bool {
		events, over := f.take(now)
		batches = append(batches, batch{f, events})
		return over
	})
	if len(t.watched) == 0 {
		t.cancel()
		t.cancel = nil
	}
	return batches, len(t.watched)
}

func (t *Tail) publish(ctx context.Context, f *feed, events []exchange.Event) {
	for i := range events {
		events[i].Topic, events[i].Node = f.topic, t.Node
	}
	_, err := host.Safely("publishing events", func() (struct{}, error) {
		return struct{}{}, t.Events.PublishEvents(ctx, f.topic, events)
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.miss(events)
		if !f.failing {
			t.Log.Warn("events of a topic that is watched cannot be sent", "topic", f.topic, "err", err)
		}
	}
	f.failing = err != nil
}
