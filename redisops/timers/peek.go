package timers

import (
	"container/heap"
	"context"
	"fmt"
	"math/bits"
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

// peeker sends the peeks at all topics in batches, so that the cost of idle topics grows
// with the number of commands, not of topics.
type peeker struct {
	caller scripts.Caller

	mu      sync.Mutex
	waiting watchHeap   // for their next peeks
	begun   time.Time   // from where steps are counted
	last    time.Time   // when the last commands were sent
	timer   *time.Timer // runs next; nil: there was none
	fires   time.Time   // when it does; zero: it does not
}

// watched is a topic at which is peeked.
type watched struct {
	source   *TimerSource
	ctx      context.Context //nolint:containedctx // of the caller, who does not wait
	answered exchange.Answered

	at    time.Time // of the next peek; zero: it is in flight, or there is none
	place int       // in peeker.waiting; -1: in none
	ended bool
}

// Peek reports when the first timer of the topic is due. It changes nothing and
// costs a fraction of an exchange, less with more topics: it may wait a few
// milliseconds to be batched. Errors are those of Exchange.
func (t *TimerSource) Peek(ctx context.Context) (exchange.PeekReply, error) {
	type result struct {
		answer exchange.PeekReply
		err    error
	}
	done := make(chan result, 1)
	stop := t.watch(ctx, func(_ time.Time, answer exchange.PeekReply, err error) (next time.Time, ok bool) {
		done <- result{answer, err}
		return next, false
	})
	select {
	case r := <-done:
		return r.answer, r.err
	case <-ctx.Done():
		stop()
		return exchange.PeekReply{}, ctx.Err()
	}
}

// Watch peeks at the topic at once and then again and again, until answered returns not ok,
// ctx ends or stop is called. answered gets each answer, or an error as those of Exchange, and
// returns when to peek again: a peek may be a few milliseconds late to be batched. It is called
// by one goroutine at a time and must not wait. stop returns when the next peek would have been
// sent; zero: one is in flight, and answered may be called once more.
func (t *TimerSource) Watch(ctx context.Context, answered exchange.Answered) (stop func() (next time.Time)) {
	t.busy.Store(nil) // the topic is idle
	return t.watch(ctx, answered)
}

func (t *TimerSource) watch(ctx context.Context, answered exchange.Answered) (stop func() (next time.Time)) {
	w := &watched{source: t, ctx: ctx, answered: answered, place: -1}
	t.timers.await([]*watched{w}, []time.Time{time.Now()})
	return func() time.Time { return t.timers.peeker.end(w) }
}

// await has the next peeks sent when they are due; at zero, there is none.
func (s *Timers) await(all []*watched, at []time.Time) {
	l := &s.peeker
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for i, w := range all {
		if at[i].IsZero() || w.ended {
			continue
		}
		w.at = l.inStep(now, at[i])
		heap.Push(&l.waiting, w)
	}
	l.arm(s)
}

// inStep returns an instant up to a 64th later, which it has in common with other peeks: a batch
// costs more than its peeks.
func (l *peeker) inStep(now, at time.Time) time.Time {
	if l.begun.IsZero() {
		l.begun = now
	}
	wait := at.Sub(now) / 64
	if wait <= 0 {
		return at
	}
	step := time.Duration(1) << (bits.Len64(uint64(wait)) - 1)
	return l.begun.Add((at.Sub(l.begun) + step - 1) / step * step)
}

// end ends a watch. It returns when it would have peeked again.
func (l *peeker) end(w *watched) (next time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.ended = true
	if w.place >= 0 {
		heap.Remove(&l.waiting, w.place)
	}
	if len(l.waiting) == 0 && l.timer != nil {
		l.timer.Stop()
		l.fires = time.Time{}
	}
	return w.at
}

// arm sets the timer for the next peeks.
func (l *peeker) arm(s *Timers) {
	if len(l.waiting) == 0 {
		return
	}
	at := l.waiting[0].at
	if earliest := l.last.Add(peekEvery); at.Before(earliest) {
		at = earliest
	}
	switch {
	case !l.fires.IsZero() && !at.Before(l.fires):
		return
	case l.timer == nil:
		l.timer = time.AfterFunc(time.Until(at), func() { s.look(s.peeker.due(s)) })
	default:
		l.timer.Reset(time.Until(at))
	}
	l.fires = at
}

// due takes the watches whose next peeks are due, without those that have ended.
func (l *peeker) due(s *Timers) (all []*watched) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for len(l.waiting) > 0 && !l.waiting[0].at.After(now) {
		w := heap.Pop(&l.waiting).(*watched)
		if w.at = (time.Time{}); w.ctx.Err() == nil {
			all = append(all, w)
		}
	}
	if len(all) > 0 {
		l.last = now
	}
	l.fires = time.Time{}
	l.arm(s)
	return all
}

// look sends peeks. It does not wait for the answers: a connection that hangs, or a shard that
// is down, does not delay the other peeks.
func (s *Timers) look(all []*watched) {
	for _, group := range s.groupPeeks(all) {
		for part := range slices.Chunk(group, peeksPerCommand) {
			go s.answer(part)
		}
	}
}

// answer sends the peeks of one command, and passes the answers on.
func (s *Timers) answer(part []*watched) {
	var answers []exchange.PeekReply
	sent := time.Now()
	err := usercode.Called("a peek", func() (err error) { // of a hook of the client, for instance
		answers, err = s.lookAt(part)
		return err
	})
	next := make([]time.Time, len(part))
	for i, w := range part {
		answer, failure := exchange.PeekReply{}, err
		if err == nil {
			answer = answers[i]
		} else {
			failure = fmt.Errorf("peek at %q: %w", w.source.topic, err)
		}
		if at, ok := w.answered(sent, answer, failure); ok {
			next[i] = at
		}
	}
	s.await(part, next)
}

// groupPeeks divides peeks by command: on one server the topics that were empty
// last time, and the others; elsewhere by slot as well.
func (s *Timers) groupPeeks(all []*watched) [][]*watched {
	type kind struct {
		slot  int
		empty bool
	}
	_, single := s.RDB.(*redis.Client)
	kinds, groups := map[kind]int{}, [][]*watched{}
	for _, p := range all {
		k := kind{empty: p.source.empty.Load()}
		if !single {
			k.slot = layout.SlotOf(p.source.timeline)
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

// lookAt returns the answers to the peeks of one command. A single EXISTS shows that the topics
// which were empty still are.
func (s *Timers) lookAt(part []*watched) ([]exchange.PeekReply, error) {
	answers, keys := make([]exchange.PeekReply, len(part)), make([]string, len(part))
	for i, w := range part {
		keys[i] = w.source.timeline
	}
	ctx := context.WithoutCancel(part[0].ctx) // the others do not end with the first
	if part[0].source.empty.Load() {
		found, err := s.RDB.Exists(ctx, keys...).Result()
		if found == 0 || err != nil {
			for i := range answers {
				answers[i].Next = -1
			}
			return answers, scripts.Wrap(ctx, keys, err)
		}
	}
	answer, _, err := s.RunBatched(ctx, part[0].source.shard, &s.peeker.caller, false, peekScript, keys)
	text, err := scripts.AsText(answer, err)
	r := scripts.Reader{Text: text + " "}
	if err != nil {
		r.Err = err
	}
	now := scripts.Instant(r.Score())
	for i, w := range part {
		next := r.Integer()
		answers[i] = exchange.PeekReply{Now: now, Next: scripts.Micros(int64(next))}
		if next < -1 {
			answers[i].Next, answers[i].Overdue = 0, scripts.Micros(int64(-2-next))
		}
		w.source.empty.Store(next == -1)
	}
	return answers, r.Err
}

// watchHeap is a heap: the next peek is first.
type watchHeap []*watched

func (w watchHeap) Len() int           { return len(w) }
func (w watchHeap) Less(i, j int) bool { return w[i].at.Before(w[j].at) }

func (w watchHeap) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].place, w[j].place = i, j
}

// Push is for package heap.
func (w *watchHeap) Push(x any) {
	x.(*watched).place = len(*w)
	*w = append(*w, x.(*watched))
}

// Pop is for package heap.
func (w *watchHeap) Pop() any {
	last := len(*w) - 1
	x := (*w)[last]
	(*w)[last] = nil
	*w, x.place = (*w)[:last], -1
	return x
}
