package shards

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// place returns the physical topic in which a timer without a key is, and the others
// where it may be: all others while timers have keys, and otherwise its places in the
// layouts between which timers move.
func place(l sharding.Layout, topic, id string) (own string, others []string) {
	own = l.Shard(topic, id, "")
	if l.Keyed {
		return own, slices.DeleteFunc(l.All(topic), func(name string) bool { return name == own })
	}
	for _, n := range l.Others() {
		others = append(others, sharding.Name(topic, n, sharding.ShardOf(id, "", n)))
	}
	return own, others
}

// Exists reports whether there is a timer.
func (s *Store) Exists(ctx context.Context, topic, id string) (bool, error) {
	_, err := find(ctx, s, topic, id, func(ctx context.Context, at timers.Fenced, name string) (struct{}, error) {
		return struct{}{}, at.Has(ctx, name, id)
	})
	if errors.Is(err, wakebelltype.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Recent returns the physical topics that may have something of a timer that was in the
// topic within the last 24 hours, those of the present layout first.
func (s *Store) Recent(ctx context.Context, topic, id string) (names []string, err error) {
	l, err := s.layout(ctx, topic)
	if err != nil {
		return nil, err
	}
	counts := l.Answered(time.Now()) // this clock is good enough: what ended is read soon
	if len(counts) == 0 {
		counts = append([]int{l.Count()}, l.Others()...)
	}
	for _, n := range counts {
		if l.Keyed {
			names = append(names, sharding.Names(topic, n)...)
		} else {
			names = append(names, sharding.Name(topic, n, sharding.ShardOf(id, "", n)))
		}
	}
	return names, nil
}

// Placed is the physical topic in which a timer belongs, and the fence of calls there. The
// timer may have yet to move there from Before, if that is set.
type Placed struct {
	Name, Before string
	Fence        *timers.Fence
}

// Place returns the place of a timer without a key.
func (s *Store) Place(ctx context.Context, topic, id string) (Placed, error) {
	l, err := s.layout(ctx, topic)
	p := Placed{Name: l.Shard(topic, id, ""), Fence: fenceOf(l)}
	if l.Moving && l.From > 0 && l.From != l.Count() {
		p.Before = l.Old(topic, id, "")
	}
	return p, err
}

// Routed makes a call that asks for places of timers of topics, and again while Redis
// refuses it because one of them has another layout by then.
func (s *Store) Routed(ctx context.Context, topics []string, call func() error) (err error) {
	for range maxRefusals {
		if err = call(); !errors.Is(err, scripts.ErrStaleLayout) {
			return err
		}
		for _, topic := range topics {
			if err := s.layouts.agree(ctx, topic); err != nil {
				return err
			}
		}
	}
	return err
}

// again returns the layout of a topic whose shard does not have a timer. If the map was
// read before another client divided the topic or scheduled the first timer with a key,
// it is read again. A topic without shards is announced before it has any, so the layout
// that was read is enough.
func (s *Store) again(ctx context.Context, topic string, l sharding.Layout) (sharding.Layout, error) {
	if l.Plain() || l.Keyed {
		return l, nil
	}
	if err := s.layouts.Renew(ctx); err != nil {
		return l, err
	}
	return s.layouts.Of(ctx, topic)
}

// find makes a call for a timer in the shard of its id, and if that does not have it, in
// the others that may.
func find[T any](ctx context.Context, s *Store, topic, id string, call placedCall[T]) (T, error) {
	return routed(ctx, s, topic, func(l sharding.Layout) (T, error) {
		if l.Moves() {
			return findMoving(ctx, s, l, topic, id, call)
		}
		return findResting(ctx, s, l, topic, id, call)
	})
}

// placedCall is a call for a timer in a physical topic, behind the fence of a layout.
type placedCall[T any] = func(ctx context.Context, at timers.Fenced, name string) (T, error)

// findResting makes a call for a timer of a topic whose timers do not move.
func findResting[T any](ctx context.Context, s *Store, l sharding.Layout, topic, id string, call placedCall[T]) (T, error) {
	first, _ := place(l, topic, id)
	found, err := call(ctx, s.at(l), first)
	if !errors.Is(err, wakebelltype.ErrNotFound) {
		return found, err
	}
	l, failed := s.again(ctx, topic, l)
	if failed != nil {
		return found, failed
	}
	own, rest := place(l, topic, id)
	if own != first {
		rest = append([]string{own}, rest...)
	}
	if len(rest) == 0 {
		return found, err
	}
	return firstOf(ctx, s.at(l), rest, call)
}

// Get reads a timer; see [timers.Timers.Get].
func (s *Store) Get(ctx context.Context, topic, id string) (timers.Timer, error) {
	return find(ctx, s, topic, id, func(ctx context.Context, at timers.Fenced, name string) (timers.Timer, error) {
		return at.Get(ctx, name, id)
	})
}

// Reschedule sets a new instant for a timer, which stays in its shard; see
// [timers.Timers.Reschedule].
func (s *Store) Reschedule(ctx context.Context, topic, id string, when time.Time, in time.Duration) (wakebelltype.Scheduled, error) {
	return find(ctx, s, topic, id, func(ctx context.Context, at timers.Fenced, name string) (wakebelltype.Scheduled, error) {
		return at.Reschedule(ctx, name, id, when, in)
	})
}

// RunNow makes a timer due now; see [timers.Timers.RunNow].
func (s *Store) RunNow(ctx context.Context, topic, id string) (wakebelltype.Presence, error) {
	return find(ctx, s, topic, id, func(ctx context.Context, at timers.Fenced, name string) (wakebelltype.Presence, error) {
		return at.RunNow(ctx, name, id)
	})
}

// Swap replaces the payload of a timer; see [timers.Fenced.Swap].
func (s *Store) Swap(ctx context.Context, topic, id string, old, payload []byte) (bool, error) {
	return find(ctx, s, topic, id, func(ctx context.Context, at timers.Fenced, name string) (bool, error) {
		return at.Swap(ctx, name, id, old, payload)
	})
}
