package observe

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Events publishes what happens on a topic to its watchers.
type Events interface {
	// PublishEvents sends a batch. It may fail or take long; no delivery waits
	// for it.
	PublishEvents(ctx context.Context, topic string, events []wakebelltype.Event) error
}

const (
	// publishEvery is how long events are batched before they are sent.
	publishEvery = 50 * time.Millisecond
	// MaxPendingEvents bounds the events of a topic in a batch: further events are
	// counted as missed.
	MaxPendingEvents = 1000
	// PublishAtOnce bounds the events of one message.
	PublishAtOnce = 100
	// MaxWatch bounds how long one hint keeps a topic watched.
	MaxWatch = time.Minute
	// LastPublish bounds the sending of the last events when a runtime stops.
	LastPublish = time.Second
)

// Feed collects the events of a topic. Pollers check Watched, which is cheap, and
// append; they never wait. Loops over many timers check Collects instead, and count
// what they did not append with Miss.
type Feed struct {
	Topic    string
	Describe func() wakebelltype.NodeState // the state of the node; nil: unknown
	Watched  atomic.Bool                   // a client watches, or early is open; changed under mu
	collects atomic.Bool                   // the same, but false while early is full; changed under mu

	mu      sync.Mutex
	early   early
	told    bool      // a client watches
	until   time.Time // when the watch ends, unless it is renewed
	pending []wakebelltype.Event
	missed  int
	greet   bool // send an EventNode
	leaves  bool // send an EventLeft, and nothing more
	failing bool // the last batch could not be sent
}

// Add appends an event of a timer, or counts it as missed.
func (f *Feed) Add(e wakebelltype.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case !f.told:
		f.addEarly(e)
	case len(f.pending) == MaxPendingEvents:
		f.missed++
	default:
		f.pending = append(f.pending, trimmed(e))
	}
}

// State returns the state of the node; zero if it is unknown.
func (f *Feed) State() (state wakebelltype.NodeState) {
	if f.Describe != nil {
		state = f.Describe()
	}
	return state
}

// Collects reports whether Add would keep an event.
func (f *Feed) Collects() bool { return f.collects.Load() }

// Miss counts events that happened while Collects was false.
func (f *Feed) Miss(events int) {
	if events == 0 || !f.Watched.Load() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.told:
		f.missed += events
	case f.early.open:
		f.early.missed, f.early.last = f.early.missed+events, time.Now()
	}
}

// updateWatched follows a change of told or early; mu is held.
func (f *Feed) updateWatched() {
	f.Watched.Store(f.told || f.early.open)
	f.collects.Store(f.told || f.early.open && len(f.early.events) < MaxEarly)
}

// trimmed returns an event that can be kept: ids share the memory of a whole
// reply.
func trimmed(e wakebelltype.Event) wakebelltype.Event {
	e.ID, e.Text = strings.Clone(text.Cut(e.ID, maxID)), strings.Clone(text.Cut(e.Text, maxText))
	return e
}

// miss counts events that could not be sent.
func (f *Feed) miss(events []wakebelltype.Event) {
	for _, e := range events {
		switch e.Kind {
		case wakebelltype.EventNode:
			f.greet = true
		case wakebelltype.EventMissed:
			f.missed += e.Missed
		default:
			f.missed++
		}
	}
}

// take empties the feed; over says that the watch has ended.
func (f *Feed) take(now time.Time) (events []wakebelltype.Event, over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.greet {
		f.greet = false
		greeting := wakebelltype.Event{Kind: wakebelltype.EventNode}
		if f.Describe != nil {
			state := f.Describe()
			greeting.State = &state
		}
		events = append(events, greeting)
	}
	events = append(events, f.pending...)
	if f.missed > 0 {
		events = append(events, wakebelltype.Event{Kind: wakebelltype.EventMissed, Missed: f.missed})
	}
	f.pending, f.missed = f.pending[:0], 0
	if f.leaves {
		events = append(events, wakebelltype.Event{Kind: wakebelltype.EventLeft})
	}
	if f.leaves || now.After(f.until) {
		f.told = false
		f.updateWatched()
		f.pending = nil
		return events, true
	}
	return events, false
}

// Publisher sends the events of the watched topics. Its goroutine runs only while
// there are any.
type Publisher struct {
	Events Events // nil: topics cannot be watched
	Node   string
	Log    *slog.Logger
	Io     *sync.WaitGroup

	mu      sync.Mutex
	watched []*Feed
	asked   map[*Feed]time.Time // when a client last watched a topic, or asked for the node
	cancel  context.CancelFunc  // ends the goroutine; nil: it does not run
	stopped bool
}

// Watch starts or renews the watch of a topic for a watcher that has been
// subscribed for some time.
func (t *Publisher) Watch(f *Feed, d, subscribed time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Events == nil || t.stopped || d <= 0 {
		return
	}
	f.mu.Lock()
	f.until, f.greet = time.Now().Add(min(d, MaxWatch)), true
	f.recall(subscribed)
	f.told = true
	f.updateWatched()
	f.mu.Unlock()
	if !slices.Contains(t.watched, f) {
		t.watched = append(t.watched, f)
	}
	if t.asked == nil {
		t.asked = map[*Feed]time.Time{}
	}
	t.asked[f] = time.Now()
	t.start()
}

// start starts the goroutine, unless it runs. mu is held.
func (t *Publisher) start() {
	if t.cancel == nil {
		//nolint:forbidigo // the context lasts as long as the runtime; Stop ends
		// it
		ctx, cancel := context.WithCancel(context.Background())
		t.cancel = cancel
		t.Io.Go(func() { t.run(ctx) })
	}
}

// Leave forgets a topic that the node does not handle any more. Says has its last events sent,
// and an EventLeft, to those that know the node because they asked within MaxWatch: a node
// that is only silent has died.
func (t *Publisher) Leave(f *Feed, says bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	asked, known := t.asked[f]
	delete(t.asked, f)
	if t.stopped || !says || !known || time.Since(asked) >= MaxWatch {
		return
	}
	f.mu.Lock()
	f.leaves = true
	f.mu.Unlock()
	if !slices.Contains(t.watched, f) {
		t.watched = append(t.watched, f)
	}
	t.start()
}

// Stop sends the last events, and an EventLeft to those that know the node because they
// asked within MaxWatch. It ends the goroutine, without waiting for it.
func (t *Publisher) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return
	}
	t.stopped = true
	if t.cancel != nil {
		t.cancel()
		return
	}
	if len(t.asked) > 0 {
		//nolint:forbidigo // the runtime has ended; LastPublish bounds it
		t.Io.Go(func() { t.sendLast(context.Background()) })
	}
}

// sendLast sends what is left, and that the node leaves.
func (t *Publisher) sendLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, LastPublish)
	defer cancel()
	t.send(ctx)
	t.mu.Lock()
	asked := maps.Clone(t.asked)
	t.mu.Unlock()
	for f, at := range asked {
		if time.Since(at) < MaxWatch && ctx.Err() == nil {
			t.publish(ctx, f, []wakebelltype.Event{{Kind: wakebelltype.EventLeft}})
		}
	}
}

func (t *Publisher) run(ctx context.Context) {
	tick := time.NewTicker(publishEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if t.send(ctx) == 0 {
				return
			}
		case <-ctx.Done():
			t.sendLast(context.WithoutCancel(ctx))
			return
		}
	}
}

// eventBatch is the events of one feed.
type eventBatch struct {
	feed   *Feed
	events []wakebelltype.Event
}

// send publishes the batches, and returns how many topics are still watched; at 0
// the goroutine has to end.
func (t *Publisher) send(ctx context.Context) (left int) {
	batches, left, end := t.collect(time.Now())
	if end != nil { // Stop does not know the goroutine any more
		defer end()
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, LastPublish)
		defer cancel()
	}
	for _, b := range batches {
		for part := range slices.Chunk(b.events, PublishAtOnce) {
			t.publish(ctx, b.feed, part)
		}
	}
	return left
}

// collect empties the feeds and removes those that are no longer watched. At the end of the
// last, it returns the function that ends the goroutine.
func (t *Publisher) collect(now time.Time) (batches []eventBatch, left int, end context.CancelFunc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watched = slices.DeleteFunc(t.watched, func(f *Feed) bool {
		events, over := f.take(now)
		batches = append(batches, eventBatch{f, events})
		return over
	})
	if t.stopped { // the goroutine still has to send the last events
		return batches, 1, nil
	}
	if len(t.watched) == 0 {
		end, t.cancel = t.cancel, nil
	}
	return batches, len(t.watched), end
}

func (t *Publisher) publish(ctx context.Context, f *Feed, events []wakebelltype.Event) {
	for i := range events {
		events[i].Topic, events[i].Node = f.Topic, t.Node
	}
	_, err := host.Recovered("publishing events", func() (struct{}, error) {
		return struct{}{}, t.Events.PublishEvents(ctx, f.Topic, events)
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.miss(events)
		if !f.failing {
			t.Log.Warn("events not sent", "topic", f.Topic, "err", err)
		}
	}
	f.failing = err != nil
}
