package shards

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// mover begins a move, or continues one.
func (s *Store) mover(ctx context.Context, topic string, to *Store, arriveIn string, o wakebelltype.MoveOptions) (*mover, error) {
	from, now, err := s.resting(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("look at the topic in the source: %w", err)
	}
	if _, _, err = to.resting(ctx, arriveIn); err != nil {
		return nil, fmt.Errorf("look at the topic in the target: %w", err)
	}
	if err := checkClocks(ctx, s, to); err != nil {
		return nil, err
	}
	m := s.moverOf(topic, from, from.Left(topic, now))
	m.to, m.topic = to, arriveIn
	if o.All {
		m.margin, m.grace = 0, 0
	}
	if m.move, err = m.begun(ctx); err != nil {
		return nil, err
	}
	if m.move == "" {
		m.names = from.Polled(topic, now)
		err = m.begin(ctx)
	} else {
		err = m.resume(ctx)
	}
	if err == nil { // the move has begun with the stored layouts, which the maps may not have
		err = errors.Join(s.layouts.Renew(ctx), to.layouts.Renew(ctx))
	}
	if err == nil {
		err = m.copyMarks(ctx) // before the timers, for clients that already use the target
	}
	if err == nil {
		err = m.copyAllRates(ctx, m.names)
	}
	return m, err
}

// moverOf returns a mover without a target.
func (s *Store) moverOf(topic string, l sharding.Layout, names []string) *mover {
	m := &mover{source: topic, names: names, was: l}
	m.transport = &transport{
		from: s, fence: fenceOf(l), keep: arrivingLife, margin: awayMargin, grace: awayMargin, before: m.noteKeys, bounds: s.bounds, offsets: &sync.Map{},
		outbox:  func(k timers.TopicKeys) (string, string) { return k.Leaving(), k.Left() },
		arrived: func(k timers.TopicKeys) string { return k.Arriving(m.move) },
	}
	return m
}

// noteKeys makes the target know that timers have keys, before the first of them arrives.
func (m *mover) noteKeys(ctx context.Context, c content) error {
	if !c.hasTimers() || m.layout.Shards == 0 || m.layout.Keyed || m.keyed.Load() ||
		!slices.ContainsFunc(c.items, func(item []string) bool { return item[keyField] != "" }) {
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
			wakebelltype.ErrInvalid, skew.Round(time.Millisecond), maxSkew)
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

// MoveBegun reports whether a move of a topic to another Redis has begun.
func (s *Store) MoveBegun(ctx context.Context, topic string) (bool, error) {
	from, now, err := s.resting(ctx, topic)
	if err != nil {
		return false, fmt.Errorf("look at the topic in the source: %w", err)
	}
	move, err := s.moverOf(topic, from, from.Left(topic, now)).begun(ctx)
	return move != "", err
}

// begin prepares the target, and then notes the move in the source.
func (m *mover) begin(ctx context.Context) (err error) {
	m.move = m.from.NameMove()
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

// note notes the move in the physical topics of the source. If these have another layout than
// the map, as after a process that has died between the two, they agree first.
func (m *mover) note(ctx context.Context) error {
	err := m.noteOnce(ctx)
	for tries := 0; tries < 3 && errors.Is(err, scripts.ErrStaleLayout); tries++ {
		if _, err := m.forget(ctx); err != nil {
			return err
		}
		if err := m.from.layouts.agree(ctx, m.source); err != nil {
			return fmt.Errorf("source: %w", err)
		}
		l, failed := m.from.layout(ctx, m.source)
		switch {
		case failed != nil:
			return fmt.Errorf("source: %w", failed)
		case l.To > 0 || l.Moves() || l.Count() != m.was.Count():
			return fmt.Errorf("source: %w", errShards("topic %q: its number changes; finish that first, and repeat the call", m.source))
		}
		m.was, m.fence = l, fenceOf(l)
		err = m.noteOnce(ctx)
	}
	return err
}

func (m *mover) noteOnce(ctx context.Context) error {
	for _, name := range m.names {
		_, index := m.outbox(m.from.timers.Keys().Of(name))
		keys, args := scripts.WithGuards(m.fence.Guards(m.from.timers.Keys(), name), []string{index}, []any{m.move, arrivingLife.Milliseconds()})
		noted, err := m.from.timers.RunText(ctx, leaveScript, keys, args...)
		if err != nil {
			return fmt.Errorf("begin the move of %q: %w", name, err)
		}
		if noted != m.move {
			return fmt.Errorf("%w: topic %q: another process has begun to move it just now; repeat the call", wakebelltype.ErrInvalid, m.source)
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
	if id == m.move {
		return fmt.Errorf("%w: the target of topic %q is the source itself", wakebelltype.ErrInvalid, m.source)
	}
	return fmt.Errorf("%w: the target of topic %q is being moved to another Redis itself", wakebelltype.ErrInvalid, m.source)
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
		_, err = s.PauseUntil(ctx, topic, PauseOf(c))
		err = WithoutEnded(c, err)
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

// known checks that the target is that with which the move has begun: only it knows which
// batches have arrived. If its number of shards has changed since, none of those in the
// outboxes may have arrived.
func (m *mover) known(ctx context.Context) error {
	known, err := m.knows(ctx, m.layout.Names(m.topic))
	if err == nil && !known && m.layout.From > 0 {
		before := sharding.Names(m.topic, m.layout.From)
		if known, err = m.knows(ctx, before); err == nil && known {
			var some bool
			some, err = m.arrivedIn(ctx, before)
			known = !some
		}
	}
	if err != nil {
		return fmt.Errorf("target: %w", err)
	}
	if !known {
		return fmt.Errorf("%w: the target does not know the move of topic %q that has begun: it is another Redis, or its number of shards "+
			"has changed while a batch arrived, or the last batch arrived more than 30 days ago; repeat the call with the target with which it began, "+
			"or end it with --abort", wakebelltype.ErrInvalid, m.source)
	}
	return nil
}

// knows reports whether all of some physical topics of the target know the move.
func (m *mover) knows(ctx context.Context, names []string) (bool, error) {
	found, err := each(ctx, names, func(ctx context.Context, name string) (int64, error) {
		return m.to.exist(ctx, m.arrived(m.to.timers.Keys().Of(name)))
	})
	return err == nil && !slices.Contains(found, 0), err
}

// arrivedIn reports whether a batch in an outbox of the source has arrived in one of some
// physical topics of the target.
func (m *mover) arrivedIn(ctx context.Context, names []string) (bool, error) {
	for _, from := range m.names {
		batches, err := m.pending(ctx, from)
		if err != nil {
			return false, err
		}
		if len(batches) == 0 {
			continue
		}
		var tokens []string
		for token := range batches {
			tokens = append(tokens, token+" "+from)
		}
		found, err := each(ctx, names, func(ctx context.Context, name string) (found []any, err error) {
			key := m.arrived(m.to.timers.Keys().Of(name))
			err = m.to.timers.Again(ctx, func() error {
				found, err = m.to.timers.RDB.HMGet(ctx, key, tokens...).Result()
				return scripts.Wrap(ctx, []string{key}, err)
			})
			return found, err
		})
		if err != nil || slices.ContainsFunc(slices.Concat(found...), func(token any) bool { return token != nil }) {
			return true, err
		}
	}
	return false, nil
}
