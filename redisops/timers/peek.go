package timers

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/usercode"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

const (
	// peekEvery is the least time between two batches of peeks. A peek that comes
	// later is sent at once.
	peekEvery = 10 * time.Millisecond
	// peeksPerCommand bounds the topics of one command.
	peeksPerCommand = 500
)

// peeker batches the peeks of all topics, so that the cost of idle topics grows
// with the number of commands, not of topics.
type peeker struct {
	mu      sync.Mutex
	waiting []*peek
	running bool
	caller  scripts.Caller
	last    time.Time // when the last commands were sent; used by the goroutine only
}

// peek is a topic that waits for the answer to its Peek.
type peek struct {
	source *TimerSource
	ctx    context.Context //nolint:containedctx // of the waiting caller
	done   chan struct{}   // closed when answer and err are set
	answer exchange.PeekReply
	err    error
}

// Peek reports when the first timer of the topic is due. It changes nothing and
// costs a fraction of an exchange, less with more topics: it may wait a few
// milliseconds to be batched. Errors are those of Exchange.
func (t *TimerSource) Peek(ctx context.Context) (exchange.PeekReply, error) {
	p := &peek{source: t, ctx: ctx, done: make(chan struct{})}
	t.timers.peeker.enter(t.timers, p)
	select {
	case <-p.done:
		if p.err != nil {
			return exchange.PeekReply{}, fmt.Errorf("peek at %q: %w", t.topic, p.err)
		}
		return p.answer, nil
	case <-ctx.Done():
		return exchange.PeekReply{}, ctx.Err()
	}
}

func (l *peeker) enter(s *Timers, p *peek) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, p)
	if !l.running {
		l.running = true
		go l.run(s)
	}
}

// run sends peeks until none wait. It does not wait for the answers: a connection
// that hangs, or a shard that is down, does not delay the other peeks.
func (l *peeker) run(s *Timers) {
	for all := l.next(); len(all) > 0; all = l.next() {
		s.look(all)
	}
}

// next waits until peekEvery has passed and takes the waiting peeks; it returns
// none at the end.
func (l *peeker) next() []*peek {
	for pause := time.Until(l.last.Add(peekEvery)); pause > 0; pause = time.Until(l.last.Add(peekEvery)) {
		<-time.After(pause)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.waiting
	l.waiting, l.running = nil, len(all) > 0
	l.last = time.Now()
	return all
}

// look answers all peeks. Each command has the context of its first peek.
func (s *Timers) look(all []*peek) {
	all = slices.DeleteFunc(all, func(p *peek) bool { return p.ctx.Err() != nil })
	for _, group := range s.groupPeeks(all) {
		for part := range slices.Chunk(group, peeksPerCommand) {
			go func() {
				err := usercode.Called("a peek", func() error { // of a hook of the client, for instance
					s.lookAt(part)
					return nil
				})
				for _, p := range part {
					if err != nil {
						p.err = err
					}
					close(p.done)
				}
			}()
		}
	}
}

// groupPeeks divides peeks by command: on one server the topics that were empty
// last time, and the others; elsewhere by slot as well.
func (s *Timers) groupPeeks(all []*peek) [][]*peek {
	type kind struct {
		slot  int
		empty bool
	}
	_, single := s.RDB.(*redis.Client)
	kinds, groups := map[kind]int{}, [][]*peek{}
	for _, p := range all {
		k := kind{empty: p.source.empty.Load()}
		if !single {
			k.slot = layout.SlotOf(p.source.keys.Timeline)
		}
		i, known := kinds[k]
		if !known {
			i = len(groups)
			kinds[k], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], p)
	}
	return groups
}

// lookAt answers the peeks of one command. A single EXISTS shows that the topics
// which were empty still are.
func (s *Timers) lookAt(part []*peek) {
	keys := make([]string, len(part))
	for i, p := range part {
		keys[i] = p.source.keys.Timeline
	}
	ctx := part[0].ctx
	if part[0].source.empty.Load() {
		found, err := s.RDB.Exists(ctx, keys...).Result()
		if found == 0 || err != nil {
			for _, p := range part {
				p.answer, p.err = exchange.PeekReply{Next: -1}, scripts.Wrap(ctx, keys, err)
			}
			return
		}
	}
	answer, _, err := s.RunBatched(ctx, part[0].source.shard, &s.peeker.caller, false, peekScript, keys)
	text, err := scripts.AsText(answer, err)
	r := scripts.Reader{Text: text + " "}
	if err != nil {
		r.Err = err
	}
	now := scripts.Instant(r.Score())
	for _, p := range part {
		next := r.Integer()
		p.answer = exchange.PeekReply{Now: now, Next: scripts.Micros(int64(next))}
		if next < -1 {
			p.answer.Next, p.answer.Overdue = 0, scripts.Micros(int64(-2-next))
		}
		p.source.empty.Store(next == -1)
	}
	for _, p := range part {
		p.err = r.Err
	}
}
