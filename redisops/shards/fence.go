package shards

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Each physical topic has a record of the layout with which calls may write there, in its
// own slot, so that the script of a call can check it. A change stores the layout in the map,
// and then raises the records. Anyone may do the second: a call that is refused does, and
// it restores the layout in the map if that has lost it.

// maxRefusals bounds how often a call is routed again.
const maxRefusals = 50

// at returns the store for calls that are routed with a layout.
func (s *Store) at(l sharding.Layout) timers.Fenced { return s.timers.WithFence(fenceOf(l)) }

// routed makes a call with the layout of a topic, and again while Redis refuses it because
// the topic has another layout by then.
func routed[T any](ctx context.Context, s *Store, topic string, call func(sharding.Layout) (T, error)) (answer T, err error) {
	for range maxRefusals {
		var l sharding.Layout
		if l, err = s.layout(ctx, topic); err != nil {
			return answer, err
		}
		if answer, err = call(l); !errors.Is(err, scripts.ErrStaleLayout) {
			return answer, err
		}
		if failed := s.layouts.agree(ctx, topic); failed != nil {
			return answer, failed
		}
	}
	return answer, err
}

// waitsFor returns the error of a routed call that cannot be made while timers move. If the
// layout with which it was routed is an old one, and they no longer move, it is routed again.
func (s *Store) waitsFor(ctx context.Context, topic, why string) error {
	l, _, err := s.layouts.Stored(ctx, topic)
	switch {
	case err != nil:
		return err
	case !l.Moves():
		return scripts.ErrStaleLayout
	default:
		return errShards("topic %q: %s", topic, why)
	}
}

// records returns the physical topics whose records a layout concerns, those before it
// first: when a call can write to the others, none that was routed before can write there.
func records(l sharding.Layout, topic string) []string {
	var names []string
	for _, n := range []int{l.From, 1, l.Count(), l.To} {
		if n == 0 {
			continue
		}
		for _, name := range sharding.Names(topic, n) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// record reads the record of a physical topic: its text, and the layout that it has. One
// that cannot be read counts as that of an early layout.
func (m *Map) record(ctx context.Context, name string) (text string, l sharding.Layout, err error) {
	key := m.timers.Keys().Of(name).Layout()
	err = m.timers.Again(ctx, func() error {
		text, err = m.timers.RDB.Get(ctx, key).Result()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		return scripts.Wrap(ctx, []string{key}, err)
	})
	if err != nil {
		return "", l, fmt.Errorf("layout of %q: %w", name, err)
	}
	if _, layout, found := strings.Cut(text, " "); found {
		l, _ = sharding.Read(layout)
	}
	return text, l, nil
}

// raise makes physical topics refuse calls that were routed with another layout than l.
func (m *Map) raise(ctx context.Context, topic string, l sharding.Layout) error {
	after := l.ID + " " + l.Text()
	before := len(sharding.Names(topic, l.From)) // and 1: they come first
	names := records(l, topic)
	if l.From != 1 && l.Count() != 1 {
		before++
	}
	before = min(before, len(names))
	for _, part := range [][]string{names[:before], names[before:]} {
		_, err := each(ctx, part, func(ctx context.Context, name string) (bool, error) { return true, m.raiseOne(ctx, name, l, after) })
		if err != nil {
			return err
		}
	}
	return nil
}

// raiseOne makes a physical topic refuse calls that were routed with another layout, unless
// it has a later one.
func (m *Map) raiseOne(ctx context.Context, name string, l sharding.Layout, after string) error {
	key := m.timers.Keys().Of(name).Layout()
	for {
		before, at, err := m.record(ctx, name)
		if err != nil || at.ID == l.ID || at.Number > l.Number {
			return err
		}
		stored, err := m.timers.RunText(ctx, raiseScript, []string{key}, before, after)
		if err != nil {
			return fmt.Errorf("layout of %q: %w", name, err)
		}
		if stored == after {
			return nil
		}
	}
}

// recover restores the layout of a topic in the map if a physical topic has a later one,
// because a failover has lost the last changes of the map. Stored and text are what the map
// has.
func (m *Map) recover(ctx context.Context, topic string, stored sharding.Layout, text string) (restored bool, err error) {
	found, err := each(ctx, records(stored, topic), func(ctx context.Context, name string) (sharding.Layout, error) {
		_, l, err := m.record(ctx, name)
		return l, err
	})
	if err != nil {
		return false, err
	}
	latest := slices.MaxFunc(found, func(a, b sharding.Layout) int { return a.Number - b.Number })
	if latest.Number <= stored.Number || changedByEarlier(stored, latest) {
		return false, nil
	}
	m.log().WarnContext(ctx, "the layout of a topic was lost; it is restored from the topic", "topic", topic, "shards", latest.Count())
	latest.Keyed = true // which the record may not say
	restored, err = m.store(ctx, topic, text, latest)
	return restored, err
}

// changedByEarlier reports whether a node of an earlier version, which does not write
// identities, has ended the change that a layout makes.
func changedByEarlier(stored, latest sharding.Layout) bool {
	return stored.ID == "" && stored.Shards == latest.Shards && stored.From == latest.From && stored.To == latest.To && stored.Shards > 0
}

// agree makes the map and the physical topics of a topic have the same layout, the latest
// one, and reads the map.
func (m *Map) agree(ctx context.Context, topic string) error {
	for {
		l, text, err := m.Stored(ctx, topic)
		if scripts.IsDenied(err) {
			return fmt.Errorf("%w: topic %q has shards, and the Redis user lacks the right to the key %q", wakebelltype.ErrDenied, topic, m.key())
		}
		if err != nil {
			return err
		}
		if restored, err := m.recover(ctx, topic, l, text); err != nil {
			return err
		} else if restored {
			continue
		}
		if text != "" && l.ID == "" { // of an earlier version
			if l, err = m.identify(ctx, topic, l, text); err != nil {
				return err
			}
		}
		if l.ID != "" {
			if err := m.raise(ctx, topic, l); err != nil {
				return err
			}
		}
		return m.Renew(ctx)
	}
}

// identify gives a layout of an earlier version an identity. After it has failed because of
// another change, the call that needs it is refused once more.
func (m *Map) identify(ctx context.Context, topic string, l sharding.Layout, text string) (sharding.Layout, error) {
	_, at, err := m.record(ctx, l.Names(topic)[0])
	if err != nil {
		return l, err
	}
	named := l
	named.ID, named.Number = rand.Text(), at.Number+1
	if stored, err := m.store(ctx, topic, text, named); err != nil || !stored {
		return l, err
	}
	return named, nil
}
