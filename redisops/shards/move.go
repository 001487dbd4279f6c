package shards

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/timers"
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
}

// mover moves a topic to another Redis.
type mover struct {
	*transport
	source string   // the topic in the source
	names  []string // its physical topics
	was    sharding.Layout
	id     string      // of the move
	keyed  atomic.Bool // the target knows that timers have keys
}

// Move moves a topic, with all that it has, to a topic of another Redis, in steps, while
// nodes and clients use both. It yields its progress now and then, until the source has
// neither timers nor dead letters. It may be ended at any time; another call continues.
func (s *Store) Move(ctx context.Context, topic string, to *Store, arriveIn string, o wakebelltype.MoveOptions) iter.Seq2[MoveProgress, error] {
	return func(yield func(MoveProgress, error) bool) {
		var p, reported MoveProgress
		m, err := s.mover(ctx, topic, to, arriveIn, o)
		if err != nil {
			yield(p, err)
			return
		}
		var at time.Time
		for {
			wait, err := m.next(ctx, &p)
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

// mover begins a move, or continues one.
func (s *Store) mover(ctx context.Context, topic string, to *Store, arriveIn string, o wakebelltype.MoveOptions) (*mover, error) {
	from, now, err := s.resting(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	if _, _, err = to.resting(ctx, arriveIn); err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	if err := checkClocks(ctx, s, to); err != nil {
		return nil, err
	}
	m := s.moverOf(topic, from, from.Polled(topic, now))
	m.to, m.topic = to, arriveIn
	if o.All {
		m.margin, m.grace = 0, 0
	}
	if m.id, err = m.begun(ctx); err != nil {
		return nil, err
	}
	if m.id == "" {
		err = m.begin(ctx)
	} else {
		err = m.resume(ctx)
	}
	if err == nil {
		err = m.copyMarks(ctx) // before the timers, for clients that already use the target
	}
	return m, err
}

// moverOf returns a mover without a target.
func (s *Store) moverOf(topic string, l sharding.Layout, names []string) *mover {
	m := &mover{source: topic, names: names, was: l}
	m.transport = &transport{
		from: s, keep: arrivingLife, margin: awayMargin, grace: awayMargin, before: m.noteKeys,
		outbox:  func(k timers.TopicKeys) (string, string) { return k.Leaving(), k.Left() },
		arrived: func(k timers.TopicKeys) string { return k.Arriving(m.id) },
	}
	return m
}

// noteKeys makes the target know that timers have keys, before the first of them arrives.
func (m *mover) noteKeys(ctx context.Context, kind string, items [][]string) error {
	if kind != ofTimers || m.layout.Shards == 0 || m.layout.Keyed || m.keyed.Load() ||
		!slices.ContainsFunc(items, func(item []string) bool { return item[keyField] != "" }) {
		return nil
	}
	err := m.to.markKeyed(ctx, m.topic)
	m.keyed.Store(err == nil)
	return err
}

// checkClocks compares the clocks of two Redis: an instant is the same number in both.
func checkClocks(ctx context.Context, a, b *Store) error {
	began := time.Now()
	first, err := a.now(ctx)
	if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	second, err := b.now(ctx)
	if err != nil {
		return fmt.Errorf("target: %w", err)
	}
	if skew, took := second.Sub(first), time.Since(began); skew < -maxSkew || skew > maxSkew+took {
		return fmt.Errorf("%w: the clock of the target differs from that of the source by %v, at most %v; set both clocks",
			redisops.ErrInvalid, skew.Round(time.Millisecond), maxSkew)
	}
	return nil
}

// begun returns the name of the move that has begun in the source; empty: none has.
func (m *mover) begun(ctx context.Context) (string, error) {
	for _, name := range m.names {
		id, err := m.from.moveOf(ctx, name)
		if err != nil || id != "" {
			return id, err
		}
	}
	return "", nil
}

// moveOf returns the name of the move of a physical topic to another Redis; empty: none.
func (s *Store) moveOf(ctx context.Context, name string) (id string, err error) {
	key := s.timers.Keys().Of(name).Left()
	err = s.timers.Again(ctx, func() error {
		id, err = s.timers.RDB.HGet(ctx, key, "m").Result()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		return scripts.Wrap(ctx, []string{key}, err)
	})
	if err != nil {
		return "", fmt.Errorf("look for a move of %q: %w", name, err)
	}
	return id, nil
}

// begin prepares the target, and then notes the move in the source.
func (m *mover) begin(ctx context.Context) (err error) {
	m.id = rand.Text()
	for _, name := range m.names { // batches without a move
		if err := m.from.complete(ctx, m.source, []string{name}); err != nil {
			return err
		}
	}
	if err := m.prepare(ctx); err != nil {
		return fmt.Errorf("target: %w", err)
	}
	// The target knows the move before the source does, so that one which was noted in the
	// source can be continued.
	if err := m.remember(ctx, arrivingLife); err != nil {
		return err
	}
	if err := m.note(ctx); err != nil {
		return err
	}
	for _, name := range m.layout.Names(m.topic) {
		id, err := m.to.moveOf(ctx, name)
		if err == nil && id == "" {
			continue
		}
		return errors.Join(err, m.refuse(ctx, id))
	}
	return nil
}

// resume continues a move that has begun.
func (m *mover) resume(ctx context.Context) (err error) {
	if m.layout, err = m.to.Layout(ctx, m.topic); err != nil {
		return fmt.Errorf("target: %w", err)
	}
	if err := m.known(ctx); err != nil {
		return err
	}
	if err := m.remember(ctx, arrivingLife); err != nil {
		return err
	}
	return m.note(ctx)
}

// note notes the move in the physical topics of the source.
func (m *mover) note(ctx context.Context) error {
	for _, name := range m.names {
		_, index := m.outbox(m.from.timers.Keys().Of(name))
		noted, err := m.from.timers.RunText(ctx, leaveScript, []string{index}, m.id, arrivingLife.Milliseconds())
		if err != nil {
			return fmt.Errorf("begin the move of %q: %w", name, err)
		}
		if noted != m.id {
			return fmt.Errorf("%w: topic %q: another process has begun to move it just now; repeat the call", redisops.ErrInvalid, m.source)
		}
	}
	return nil
}

// refuse ends a move that has just begun, to a topic that moves itself.
func (m *mover) refuse(ctx context.Context, id string) error {
	if _, err := m.forget(ctx); err != nil {
		return err
	}
	if err := m.remember(ctx, time.Second); err != nil {
		return err
	}
	if id == m.id {
		return fmt.Errorf("%w: the target of topic %q is the source itself", redisops.ErrInvalid, m.source)
	}
	return fmt.Errorf("%w: the target of topic %q is being moved to another Redis itself", redisops.ErrInvalid, m.source)
}

// forget removes the notes of the move from the source, and reports whether no batch is on
// its way.
func (m *mover) forget(ctx context.Context) (bool, error) {
	for _, name := range m.names {
		batches, index := m.outbox(m.from.timers.Keys().Of(name))
		ended, err := m.from.timers.RunText(ctx, leftScript, []string{batches, index}, m.id)
		if err != nil || ended != "1" {
			return false, err
		}
	}
	return true, nil
}

// prepare gives a target without timers the number of shards of the source, and one
// without a pause and overrides those of the source.
func (m *mover) prepare(ctx context.Context) error {
	unused, err := m.to.Unused(ctx, m.topic)
	if err == nil && unused && m.was.Count() > 1 {
		_, err = m.to.Divide(ctx, m.topic, m.was.Count())
	}
	if err != nil {
		return err
	}
	if m.layout, err = m.to.Layout(ctx, m.topic); err != nil {
		return err
	}
	c, err := m.from.timers.Control(ctx, m.names[0])
	if err == nil {
		err = m.to.takeControl(ctx, m.topic, c)
	}
	return err
}

// takeControl gives a topic without a pause and overrides those of another.
func (s *Store) takeControl(ctx context.Context, topic string, c wakebelltype.Control) error {
	own, err := s.Control(ctx, topic)
	if err != nil || own.Paused || own.Settings != (wakebelltype.Settings{}) {
		return err
	}
	if c.Paused {
		_, err = s.Pause(ctx, topic, c.PausedBy, c.Reason)
	}
	if err == nil && c.Settings != (wakebelltype.Settings{}) {
		_, err = s.Retune(ctx, topic, c.Settings)
	}
	return err
}

// remember makes the target remember the batches of the move for a while.
func (m *mover) remember(ctx context.Context, life time.Duration) error {
	_, err := each(ctx, m.layout.Names(m.topic), func(ctx context.Context, name string) (bool, error) {
		key := m.arrived(m.to.timers.Keys().Of(name))
		err := m.to.timers.Again(ctx, func() error {
			_, err := m.to.timers.RDB.Pipelined(ctx, func(pipe redis.Pipeliner) error {
				pipe.HSetNX(ctx, key, "", "1")
				pipe.PExpire(ctx, key, life)
				return nil
			})
			return scripts.Wrap(ctx, []string{key}, err)
		})
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("target: %w", err)
	}
	return nil
}

// known checks that the target is that with which the move has begun, with the same
// shards: only it knows which batches have arrived.
func (m *mover) known(ctx context.Context) error {
	found, err := each(ctx, m.layout.Names(m.topic), func(ctx context.Context, name string) (n int64, err error) {
		key := m.arrived(m.to.timers.Keys().Of(name))
		err = m.to.timers.Again(ctx, func() error {
			n, err = m.to.timers.RDB.Exists(ctx, key).Result()
			return scripts.Wrap(ctx, []string{key}, err)
		})
		return n, err
	})
	if err != nil {
		return fmt.Errorf("target: %w", err)
	}
	if slices.Contains(found, 0) {
		return fmt.Errorf("%w: the target does not know the move of topic %q that has begun: it is another Redis, or its number of shards "+
			"has changed, or the last batch arrived more than 30 days ago", redisops.ErrInvalid, m.source)
	}
	return nil
}

// next makes the next step, and returns how long to wait then. A step is not interrupted,
// so that no batch stays in the outbox.
func (m *mover) next(ctx context.Context, p *MoveProgress) (wait time.Duration, err error) {
	ended := ctx.Err()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishLimit)
	defer cancel()
	if ended == nil {
		ended = m.unchanged(ctx)
	}
	if ended != nil {
		return 0, errors.Join(ended, m.deliverRest(ctx))
	}
	moved, err := m.step(ctx, m.names)
	p.Moved += moved
	if err != nil {
		return 0, errors.Join(err, m.deliverRest(ctx))
	}
	if p.Left, err = m.from.count(ctx, m.names); err != nil || moved > 0 {
		return 0, err
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

// unchanged checks that neither topic is about to be resharded.
func (m *mover) unchanged(ctx context.Context) error {
	for _, side := range []struct {
		what  string
		store *Store
		topic string
		was   sharding.Layout
	}{{"source", m.from, m.source, m.was}, {"target", m.to, m.topic, m.layout}} {
		l, err := side.store.layout(ctx, side.topic)
		if err != nil {
			return fmt.Errorf("%s: %w", side.what, err)
		}
		if l.To > 0 || l.Moves() || l.Count() != side.was.Count() {
			return fmt.Errorf("%s: %w", side.what, errShards("topic %q: its number changes; finish that first, and repeat the call", side.topic))
		}
	}
	return nil
}

// end copies marks and notes of runs, and ends the move if nothing has come to the source
// since.
func (m *mover) end(ctx context.Context) (done bool, err error) {
	if err := m.copyMarks(ctx); err != nil {
		return false, err
	}
	if err := m.copyRuns(ctx); err != nil {
		return false, err
	}
	for _, name := range m.names {
		k := m.from.timers.Keys().Of(name)
		if n, err := m.from.exist(ctx, k.Timeline, k.Dead, k.Leaving()); n > 0 || err != nil {
			return false, err
		}
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
		noted, err := m.from.notedRuns(ctx, name)
		if err == nil && len(noted) > 0 {
			err = m.to.noteRuns(ctx, m.layout.Names(m.topic), noted)
		}
		if err != nil {
			return fmt.Errorf("move the runs of recurring schedules of %q: %w", name, err)
		}
	}
	return nil
}

// AbortMove puts the timers back that have left a topic for another Redis and whose arrival
// was not noted, and forgets the move. It returns how many there were. Some of them may
// have arrived, so it is for a target that is lost.
func (s *Store) AbortMove(ctx context.Context, topic string) (back int64, err error) {
	l, now, err := s.resting(ctx, topic)
	if err != nil {
		return 0, err
	}
	m := s.moverOf(topic, l, l.Polled(topic, now))
	if m.id, err = m.begun(ctx); err != nil {
		return 0, err
	}
	m.to, m.topic, m.layout, m.keep, m.before = s, topic, l, arrivedLife, func(_ context.Context, kind string, items [][]string) error {
		if kind != ofCounts {
			back += int64(len(items))
		}
		return nil
	}
	for _, name := range m.names {
		if err := m.deliverAll(ctx, name); err != nil {
			return back, err
		}
	}
	_, err = m.forget(ctx)
	return back, err
}
