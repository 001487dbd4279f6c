package shards

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// A topic moves to another Redis as timers move to other shards: through an outbox in
// their physical topic. The outbox is another one, so that neither a node nor a
// resharding delivers its batches to the same Redis; see docs/decisions/0031-moves.md.

const (
	// awayMargin is how soon before its instant, and how long after it, a timer without a
	// key is left to the nodes of the source.
	awayMargin = 10 * time.Second

	// arrivingLife is for how long after its last batch a move can be continued.
	arrivingLife = 30 * 24 * time.Hour

	// maxSkew is by how much the clocks of the two Redis may differ.
	maxSkew = 500 * time.Millisecond

	// finishLimit bounds how long the last step of a move that is interrupted takes.
	finishLimit = time.Minute
)

// MoveProgress is how far a move is.
type MoveProgress struct {
	Moved int64 // timers and entries, by this call
	Left  int64 // timers in the source
	Done  bool

	mover *mover // nil: it has not begun
}

// mover moves a topic to another Redis.
type mover struct {
	*transport
	source string   // the topic in the source
	names  []string // its physical topics
	was    sharding.Layout
	keyed  atomic.Bool // the target knows that timers have keys
}

// Move moves a topic, with all that it has, to a topic of another Redis, in steps, while
// nodes and clients use both. It yields its progress now and then, until the source has
// neither timers nor dead letters. It may be ended at any time; another call continues.
func (s *Store) Move(ctx context.Context, topic string, to *Store, arriveIn string, o wakebelltype.MoveOptions) iter.Seq2[MoveProgress, error] {
	return func(yield func(MoveProgress, error) bool) {
		var p, reported MoveProgress
		var at time.Time
		for {
			wait, err := s.MoveStep(ctx, topic, to, arriveIn, o, &p)
			if err != nil {
				yield(p, err)
				return
			}
			if p.Done || p != reported && time.Since(at) >= reportEvery {
				reported, at = p, time.Now()
				if !yield(p, nil) || p.Done {
					return
				}
			}
			select {
			case <-time.After(wait):
			case <-ctx.Done():
			}
		}
	}
}

// MoveStep makes the next step of a move, and returns how long to wait then. The first step with
// a p begins the move, or continues one. Move calls it until p says that all is done.
func (s *Store) MoveStep(ctx context.Context, topic string, to *Store, arriveIn string, o wakebelltype.MoveOptions, p *MoveProgress) (wait time.Duration, err error) {
	if p.mover == nil {
		m, err := s.mover(ctx, topic, to, arriveIn, o)
		if err != nil {
			return 0, err
		}
		p.mover = m
	}
	return p.mover.next(ctx, p)
}

// forget removes the notes of the move from the source, and reports whether no batch is on
// its way.
func (m *mover) forget(ctx context.Context) (bool, error) {
	for _, name := range m.names {
		batches, index := m.outbox(m.from.timers.Keys().Of(name))
		ended, err := m.from.timers.RunText(ctx, leftScript, []string{batches, index}, m.move)
		if err != nil || ended != "1" {
			return false, err
		}
	}
	return true, nil
}

// next makes the next step, and returns how long to wait then. A step is not interrupted,
// so that no batch stays in the outbox.
func (m *mover) next(ctx context.Context, p *MoveProgress) (wait time.Duration, err error) {
	stop := ctx.Err()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishLimit)
	defer cancel()
	if stop == nil {
		stop = m.unchanged(ctx)
	}
	if stop != nil {
		return 0, errors.Join(stop, m.deliverRest(ctx))
	}
	moved, ended, err := m.step(ctx, m.names)
	p.Moved += moved
	if errors.Is(err, scripts.ErrStaleLayout) { // unchanged decides on it
		return 0, errors.Join(m.from.layouts.agree(ctx, m.source), m.to.layouts.agree(ctx, m.topic))
	}
	if err != nil {
		return 0, errors.Join(err, m.deliverRest(ctx))
	}
	if p.Left, err = m.from.count(ctx, m.names); err != nil || moved > 0 {
		return 0, err
	}
	if !ended {
		return pageWait, nil
	}
	if p.Left > 0 {
		return stayWait, nil
	}
	p.Done, err = m.end(ctx)
	return stayWait, err
}

// deliverRest delivers what is in the outbox before the call ends, such as a batch of a
// script whose answer was lost.
func (m *mover) deliverRest(ctx context.Context) error {
	_, err := each(ctx, m.names, func(ctx context.Context, name string) (bool, error) { return true, m.deliverAll(ctx, name) })
	return err
}

// unchanged checks that neither topic is about to be resharded, and goes on with their
// layouts.
func (m *mover) unchanged(ctx context.Context) error {
	for _, side := range []struct {
		what  string
		store *Store
		topic string
		was   *sharding.Layout
	}{{"source", m.from, m.source, &m.was}, {"target", m.to, m.topic, &m.layout}} {
		l, err := side.store.layout(ctx, side.topic)
		if err != nil {
			return fmt.Errorf("%s: %w", side.what, err)
		}
		if l.To > 0 || l.Moves() || l.Count() != side.was.Count() {
			return fmt.Errorf("%s: %w", side.what, errShards("topic %q: its number changes; finish that first, and repeat the call", side.topic))
		}
		*side.was = l
	}
	m.fence = fenceOf(m.was)
	return nil
}

// end copies marks, notes of runs and the tokens of keys, and ends the move if nothing has
// come to the source since. The tokens come last: handlers have used the last of them when
// the source is empty.
func (m *mover) end(ctx context.Context) (done bool, err error) {
	if err := m.copyMarks(ctx); err != nil {
		return false, err
	}
	if err := m.copyRuns(ctx); err != nil {
		return false, err
	}
	for _, name := range m.names {
		k := m.from.timers.Keys().Of(name)
		if n, err := m.from.exist(ctx, k.Timeline, k.Leaving()); n > 0 || err != nil {
			return false, err
		}
		if dead, err := m.from.hasDead(ctx, name); dead || err != nil {
			return false, err
		}
	}
	if err := m.copyAllRates(ctx, m.names); err != nil {
		return false, err
	}
	if ended, err := m.forget(ctx); !ended || err != nil {
		return false, err
	}
	return true, m.remember(ctx, arrivedLife)
}

// copyMarks copies the marks of Once. Those of the source stay until they expire.
func (m *mover) copyMarks(ctx context.Context) error {
	err := m.from.eachMark(ctx, m.names, func(name, id string) error {
		mark, found, err := m.from.readMark(ctx, name, id)
		if err == nil && found {
			_, err = m.to.PutMark(ctx, m.topic, mark)
		}
		return err
	})
	if scripts.IsDenied(err) {
		m.from.layouts.log().WarnContext(ctx, "marks of Once are not moved: the Redis user may not scan keys", "topic", m.source, "err", err)
		return nil
	}
	return err
}

// copyRuns copies the notes of runs of recurring schedules to all shards of the target.
func (m *mover) copyRuns(ctx context.Context) error {
	for _, name := range m.names {
		if _, err := m.from.copyRuns(ctx, name, m.to, m.layout.Names(m.topic)); err != nil {
			return fmt.Errorf("move the runs of recurring schedules of %q: %w", name, err)
		}
	}
	return nil
}

// AbortMove puts the timers back that have left a topic for another Redis and whose arrival
// was not noted, and forgets the move. It returns how many there were. Some of them may
// have arrived, so it is for a target that is lost. If the timers of the topic move to
// other shards, these are put there.
func (s *Store) AbortMove(ctx context.Context, topic string) (back int64, err error) {
	_, err = routed(ctx, s, topic, func(l sharding.Layout) (int64, error) {
		n, err := s.abortMove(ctx, topic, l)
		back += n
		return n, err
	})
	return back, err
}

func (s *Store) abortMove(ctx context.Context, topic string, l sharding.Layout) (back int64, err error) {
	now, err := s.now(ctx)
	if err != nil {
		return 0, err
	}
	m := s.moverOf(topic, l, l.Left(topic, now))
	if m.move, err = m.begun(ctx); err != nil {
		return 0, err
	}
	m.to, m.topic, m.layout, m.keep, m.before = s, topic, l, arrivedLife, func(_ context.Context, c content) error {
		if c.kind != ofCounts {
			back += int64(len(c.items))
		}
		return nil
	}
	for _, name := range m.names {
		if err := m.deliverAll(ctx, name); err != nil {
			return back, err
		}
		k := s.timers.Keys().Of(name)
		_, index := m.outbox(k)
		keys := []string{k.Timeline, k.Leases, k.Hint, k.TimerKeys, k.KeyOrder, k.KeyStates, index}
		if _, err := s.timers.RunText(ctx, openScript, keys, m.move); err != nil {
			return back, fmt.Errorf("end the move of %q: %w", name, err)
		}
	}
	_, err = m.forget(ctx)
	return back, err
}
