package timers

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/wakebell/wakebell/redisops/internal/layout"
)

// gatherer lets concurrent schedules of a topic travel together: while
// maxFlights calls of the script are under way, what comes meanwhile waits, and
// goes in one call as soon as one of them returns. A schedule that is alone
// waits for nothing.
type gatherer struct {
	mu     sync.Mutex
	topics map[string]*crowd // those with a call under way
}

// maxFlights is how many calls a topic may have under way: more of them are
// smaller, and cost Redis and the client more.
const maxFlights = 4

// crowd is what is being scheduled on one topic.
type crowd struct {
	flights int
	waiting []*ticket
}

// ticket is one schedule that waits to travel with others.
type ticket struct {
	entries []Entry
	ctx     context.Context //nolint:containedctx // of the caller, who waits
	flight  *flight         // nil until it travels
	done    chan struct{}   // closed when answer and err are set
	answer  []Scheduled
	err     error
}

// flight is one call for several tickets.
type flight struct {
	tickets []*ticket
	waiting atomic.Int32 // callers that have not given up
	cancel  context.CancelFunc
}

// schedule calls the script for a batch, alone or with others.
func (s *Timers) schedule(ctx context.Context, topic string, entries []Entry) ([]Scheduled, error) {
	t := s.gather.enter(ctx, topic, entries)
	if t == nil {
		defer s.depart(topic)
		return s.scheduleUnkeyed(ctx, topic, entries)
	}
	select {
	case <-t.done:
		return t.answer, t.err
	case <-ctx.Done():
		s.gather.leave(topic, t)
		return nil, ctx.Err()
	}
}

// enter gives a ticket to wait with; nil: the caller may go at once, and has to
// depart afterwards.
func (g *gatherer) enter(ctx context.Context, topic string, entries []Entry) *ticket {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.topics[topic]
	if c == nil {
		c = &crowd{}
		g.topics[topic] = c
	}
	if c.flights < maxFlights {
		c.flights++
		return nil
	}
	t := &ticket{entries: entries, ctx: ctx, done: make(chan struct{})}
	c.waiting = append(c.waiting, t)
	return t
}

// leave gives up a ticket. What travels already may be written all the same; a
// call that nobody waits for any more is ended.
func (g *gatherer) leave(topic string, t *ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.flight == nil {
		c := g.topics[topic]
		c.waiting = slices.DeleteFunc(c.waiting, func(other *ticket) bool { return other == t })
		return
	}
	if t.flight.waiting.Add(-1) == 0 {
		t.flight.cancel()
	}
}

// depart ends a call and sends those who wait on the next.
func (s *Timers) depart(topic string) {
	f, ctx := s.gather.next(topic)
	if f != nil {
		go s.fly(ctx, topic, f)
	}
}

// next makes a call of those who wait; nil: nobody waits.
func (g *gatherer) next(topic string) (*flight, context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.topics[topic]
	if len(c.waiting) == 0 {
		if c.flights--; c.flights == 0 {
			delete(g.topics, topic)
		}
		return nil, nil
	}
	f := &flight{}
	f.tickets, c.waiting = board(c.waiting)
	f.waiting.Store(int32(len(f.tickets))) //nolint:gosec // bounded by BatchEntries
	// Its life is that of all its callers, not of one.
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.tickets[0].ctx))
	f.cancel = cancel
	for _, t := range f.tickets {
		t.flight = f
	}
	return f, ctx
}

// board divides those who wait: who goes together in one call, of ids that
// occur once, and who has to wait on.
func board(waiting []*ticket) (going, staying []*ticket) {
	ids, count, size := map[string]struct{}{}, 0, 0
	for _, t := range waiting {
		if count > 0 && !t.fits(ids, count, size) {
			staying = append(staying, t)
			continue
		}
		going = append(going, t)
		for i := range t.entries {
			ids[t.entries[i].ID] = struct{}{}
			size += len(t.entries[i].Payload)
		}
		count += len(t.entries)
	}
	return going, staying
}

func (t *ticket) fits(ids map[string]struct{}, count, size int) bool {
	for i := range t.entries {
		if _, twice := ids[t.entries[i].ID]; twice {
			return false
		}
		size += len(t.entries[i].Payload)
	}
	return count+len(t.entries) <= layout.BatchEntries && size <= layout.BatchBytes
}

// fly makes the call and gives everybody what is theirs.
func (s *Timers) fly(ctx context.Context, topic string, f *flight) {
	defer s.depart(topic)
	defer f.cancel()
	var entries []Entry
	for _, t := range f.tickets {
		entries = append(entries, t.entries...)
	}
	answers, err := s.scheduleUnkeyed(ctx, topic, entries)
	for _, t := range f.tickets {
		if t.err = err; err == nil {
			t.answer, answers = answers[:len(t.entries):len(t.entries)], answers[len(t.entries):]
		}
		close(t.done)
	}
}
