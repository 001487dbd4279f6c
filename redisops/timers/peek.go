package timers

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

const (
	// glanceEvery is how long glances that come one after the other wait for
	// company; one that comes alone does not wait.
	glanceEvery = 10 * time.Millisecond
	// glancesAtOnce bounds the topics of one command.
	glancesAtOnce = 500
)

// lookout lets the glances of all topics travel together, so that what idle
// topics cost does not grow with their number but with that of the commands.
type lookout struct {
	mu      sync.Mutex
	waiting []*glance
	running bool
	last    time.Time // when the last commands went out; the goroutine's
}

// glance is one topic that waits to be looked at.
type glance struct {
	source *TimerSource
	ctx    context.Context //nolint:containedctx // of the caller, who waits
	done   chan struct{}   // closed when answer and err are set
	answer exchange.Glance
	err    error
}

// Glance says when the first timer of the topic is due. It changes nothing and
// costs a fraction of an exchange, the less the more topics ask: it may wait a
// few milliseconds for others to travel with. Errors are those of Exchange.
func (t *TimerSource) Glance(ctx context.Context) (exchange.Glance, error) {
	g := &glance{source: t, ctx: ctx, done: make(chan struct{})}
	t.timers.lookout.enter(t.timers, g)
	select {
	case <-g.done:
		if g.err != nil {
			return exchange.Glance{}, fmt.Errorf("glance at %q: %w", t.topic, g.err)
		}
		return g.answer, nil
	case <-ctx.Done():
		return exchange.Glance{}, ctx.Err()
	}
}

func (l *lookout) enter(s *Timers, g *glance) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, g)
	if !l.running {
		l.running = true
		go l.run(s)
	}
}

// Run looks as long as somebody waits. It does not wait for the answers: a
// connection that hangs, or a shard that is down, holds up nobody else.
func (l *lookout) run(s *Timers) {
	for all := l.next(); len(all) > 0; all = l.next() {
		s.look(all)
	}
}

// next waits for its time and takes those who wait; none: it is over.
func (l *lookout) next() []*glance {
	for pause := time.Until(l.last.Add(glanceEvery)); pause > 0; pause = time.Until(l.last.Add(glanceEvery)) {
		<-time.After(pause)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.waiting
	l.waiting, l.running = nil, len(all) > 0
	l.last = time.Now()
	return all
}

// look has all answered, each command in the context of the first who waits for
// it.
func (s *Timers) look(all []*glance) {
	all = slices.DeleteFunc(all, func(g *glance) bool { return g.ctx.Err() != nil })
	for _, group := range s.together(all) {
		for part := range slices.Chunk(group, glancesAtOnce) {
			go func() {
				s.lookAt(part)
				for _, g := range part {
					close(g.done)
				}
			}()
		}
	}
}

// together divides glances by what one command may ask for: on one server all
// of those that were empty last time, and all others; elsewhere those of a slot.
func (s *Timers) together(all []*glance) [][]*glance {
	type kind struct {
		slot  int
		empty bool
	}
	_, single := s.RDB.(*redis.Client)
	kinds, groups := map[kind]int{}, [][]*glance{}
	for _, g := range all {
		k := kind{empty: g.source.empty.Load()}
		if !single {
			k.slot = layout.SlotOf(g.source.keys.Timeline)
		}
		i, known := kinds[k]
		if !known {
			i = len(groups)
			kinds[k], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], g)
	}
	return groups
}

// lookAt answers glances that one command may ask for. That topics which were
// empty still are is told by a single EXISTS.
func (s *Timers) lookAt(part []*glance) {
	keys := make([]string, len(part))
	for i, g := range part {
		keys[i] = g.source.keys.Timeline
	}
	ctx := part[0].ctx
	if part[0].source.empty.Load() {
		found, err := s.RDB.Exists(ctx, keys...).Result()
		if found == 0 || err != nil {
			for _, g := range part {
				g.answer, g.err = exchange.Glance{Next: -1}, scripts.Wrap(ctx, keys, err)
			}
			return
		}
	}
	text, err := s.RunText(ctx, peekScript, keys)
	r := scripts.Reader{Text: text + " "}
	if err != nil {
		r.Err = err
	}
	now := scripts.Instant(r.Score())
	for _, g := range part {
		next := r.Integer()
		g.answer = exchange.Glance{Now: now, Next: time.Duration(min(next, int(scripts.MaxMicros))) * time.Microsecond}
		g.source.empty.Store(next < 0)
	}
	for _, g := range part {
		g.err = r.Err
	}
}
