package timers

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wakebell/wakebell/internal/usercode"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/schedulewindow"
	"github.com/wakebell/wakebell/wakebelltype"
)

// coalescer sends concurrent schedules of a topic in one call: while maxInFlight
// calls of the script are in flight, later schedules wait, and the next call carries
// them as soon as a call returns. A schedule without others does not wait, unless its
// topic has a window.
//
// It buys throughput of many callers that schedule one timer each: 50 callers store
// 65,000 timers/s instead of 19,000 on two cores, loopback, and a timer costs 12
// allocations instead of 35 (go test ./redisops/timers -bench Schedule/callers=50).
// Timers.NoCoalescing switches it off.
//
// The window pays where many callers schedule one timer each, and a call returns before
// the next one comes: of 2,000 calls a second a window of 10 ms makes 100. See
// package schedulewindow and Timers.ScheduleWindow.
type coalescer struct {
	mu     sync.Mutex
	topics map[string]*pendingSchedules // the last maxCounted or so that were scheduled on
}

// maxInFlight is how many calls of a topic may be in flight: more calls are smaller,
// and cost Redis and the client more.
const maxInFlight = 4

// maxCounted is the number of topics whose calls are counted; of more topics, an idle one is
// forgotten for each new one.
const maxCounted = 1024

// windowEntries is the number of timers from which a schedule does not open a window:
// others would add little to its call.
const windowEntries = 64

// pendingSchedules are the schedules in progress on one topic.
type pendingSchedules struct {
	inFlight int
	waiting  []*waiter
	gathers  bool // some wait for the end of a window
	window   schedulewindow.Window
}

// waiter is one schedule that waits to be sent with others.
type waiter struct {
	entries   []Entry
	fence     *Fence          // those of a call have the same
	ctx       context.Context //nolint:containedctx // of the waiting caller
	batchCall *batchCall      // nil until it is sent
	done      chan struct{}   // closed when answer and err are set
	answer    []wakebelltype.Scheduled
	err       error
}

// batchCall is one call for several waiters.
type batchCall struct {
	waiters []*waiter
	waiting atomic.Int32 // callers whose context has not ended
	cancel  context.CancelFunc
}

// coalesce calls the script for timers of a topic, alone or together with those of
// other callers. Timers with a key and those that wait for replicas are sent alone.
func (s *Timers) coalesce(ctx context.Context, topic string, fence *Fence, key *Key, entries []Entry) ([]wakebelltype.Scheduled, error) {
	if s.NoCoalescing || key != nil || confirmationOf(entries).replicas > 0 {
		return s.call(ctx, topic, fence, key, entries, hasKeys(entries))
	}
	t := s.enter(ctx, topic, fence, entries)
	if t == nil {
		defer s.finish(topic)
		return s.call(ctx, topic, fence, nil, entries, hasKeys(entries))
	}
	select {
	case <-t.done:
		return t.answer, t.err
	case <-ctx.Done():
		s.gather.leave(topic, t)
		return nil, ctx.Err()
	}
}

// enter returns a waiter to wait with. If it returns nil, the caller may call the
// script at once, and must call finish afterwards.
func (s *Timers) enter(ctx context.Context, topic string, fence *Fence, entries []Entry) *waiter {
	g := &s.gather
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.topics[topic]
	if c == nil {
		c = g.add(topic)
	}
	window := s.windowFor(c, len(entries))
	switch {
	case c.inFlight == maxInFlight:
	case window <= 0:
		c.inFlight++
		return nil
	case !c.gathers:
		c.inFlight++ // of the call that the end of the window makes
		c.gathers = true
		time.AfterFunc(window, func() { s.closeWindow(topic) })
	}
	t := &waiter{entries: entries, fence: fence, ctx: ctx, done: make(chan struct{})}
	c.waiting = append(c.waiting, t)
	return t
}

// windowFor returns for how long a call of so many timers waits for others.
func (s *Timers) windowFor(c *pendingSchedules, entries int) time.Duration {
	if entries >= windowEntries {
		return 0
	}
	if s.ScheduleWindow != 0 {
		return s.ScheduleWindow
	}
	if c.window.Count(time.Now()) {
		return schedulewindow.Width
	}
	return 0
}

// add adds a topic. mu is held.
func (g *coalescer) add(topic string) *pendingSchedules {
	if len(g.topics) >= maxCounted {
		for other, c := range g.topics {
			if c.inFlight == 0 {
				delete(g.topics, other)
				break
			}
		}
	}
	c := &pendingSchedules{}
	g.topics[topic] = c
	return c
}

// leave removes a waiter whose caller gives up. If its batch is already sent, the
// entries may be written all the same; a call without remaining waiters is
// cancelled.
func (g *coalescer) leave(topic string, t *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.batchCall == nil {
		c := g.topics[topic]
		c.waiting = slices.DeleteFunc(c.waiting, func(other *waiter) bool { return other == t })
		return
	}
	if t.batchCall.waiting.Add(-1) == 0 {
		t.batchCall.cancel()
	}
}

// closeWindow sends the schedules that a window has gathered.
func (s *Timers) closeWindow(topic string) {
	s.gather.mu.Lock()
	c := s.gather.topics[topic]
	c.gathers = false
	c.window.Gathered(time.Now(), len(c.waiting))
	s.gather.mu.Unlock()
	s.finish(topic)
}

// finish ends a call and sends the next batch of waiting schedules.
func (s *Timers) finish(topic string) {
	f, ctx := s.gather.next(topic)
	if f != nil {
		go s.send(ctx, topic, f)
	}
}

// next makes a call of the waiting schedules, or returns nil if there are none or a
// window gathers more.
func (g *coalescer) next(topic string) (*batchCall, context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.topics[topic]
	if len(c.waiting) == 0 || c.gathers {
		c.inFlight--
		return nil, nil
	}
	f := &batchCall{}
	f.waiters, c.waiting = takeBatch(c.waiting)
	f.waiting.Store(int32(len(f.waiters))) //nolint:gosec // bounded by BatchEntries
	// The call lasts as long as any of its callers waits, not only the first.
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.waiters[0].ctx))
	f.cancel = cancel
	for _, t := range f.waiters {
		t.batchCall = f
	}
	return f, ctx
}

// takeBatch divides the waiting schedules into those that one call can carry, with the
// same fence and distinct ids, and the rest.
func takeBatch(waiting []*waiter) (taken, rest []*waiter) {
	if len(waiting) == 1 {
		return waiting, nil
	}
	l := load{ids: map[string]struct{}{}}
	for _, t := range waiting {
		if len(taken) > 0 && (!t.fence.equal(taken[0].fence) || !l.fits(t)) {
			rest = append(rest, t)
			continue
		}
		l.add(t)
		taken = append(taken, t)
	}
	return taken, rest
}

// load is what a call carries.
type load struct {
	ids           map[string]struct{} // nil: they are not noted
	count, costly int                 // entries, and those with a key or a mark
	size          int
}

func (l *load) add(t *waiter) {
	l.count += len(t.entries)
	for i := range t.entries {
		e := &t.entries[i]
		if l.ids != nil {
			l.ids[e.ID] = struct{}{}
		}
		l.size += len(e.Payload)
		if e.Key != "" || e.Once > 0 {
			l.costly++
		}
	}
}

// fits reports whether the call can carry t, too.
func (l *load) fits(t *waiter) bool {
	for i := range t.entries {
		if _, twice := l.ids[t.entries[i].ID]; twice {
			return false
		}
	}
	both := *l
	both.ids = nil
	both.add(t)
	return both.count <= layout.BatchEntries && both.costly <= layout.CostlyEntries && both.size <= layout.BatchBytes
}

// send makes the call and gives each waiter its part of the answer.
func (s *Timers) send(ctx context.Context, topic string, f *batchCall) {
	defer s.finish(topic)
	defer f.cancel()
	count := 0
	for _, t := range f.waiters {
		count += len(t.entries)
	}
	entries := make([]Entry, 0, count)
	for _, t := range f.waiters {
		entries = append(entries, t.entries...)
	}
	var answers []wakebelltype.Scheduled
	err := usercode.Called("a schedule", func() (err error) { // of a hook of the client, for instance
		answers, err = s.call(ctx, topic, f.waiters[0].fence, nil, entries, hasKeys(entries))
		return err
	})
	for _, t := range f.waiters {
		if t.err = err; err == nil {
			t.answer, answers = answers[:len(t.entries):len(t.entries)], answers[len(t.entries):]
		}
		close(t.done)
	}
}
