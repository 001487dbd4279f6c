package shards

import (
	"context"
	"fmt"
	"slices"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Pause makes all nodes stop claiming timers of the topic; see [timers.Timers.Pause].
func (s *Store) Pause(ctx context.Context, topic, by, reason string) (wakebelltype.Control, error) {
	return s.PauseUntil(ctx, topic, wakebelltype.Pause{By: by, Reason: reason})
}

// PauseUntil is Pause with an end; see [timers.Timers.PauseUntil]. All shards have the
// instant that the first one has.
func (s *Store) PauseUntil(ctx context.Context, topic string, p wakebelltype.Pause) (wakebelltype.Control, error) {
	first := true // control changes the first shard alone, before the others
	return s.control(ctx, topic, func(ctx context.Context, name string) (wakebelltype.Control, error) {
		if !first {
			return s.timers.PauseUntil(ctx, name, p)
		}
		c, err := s.timers.PauseUntil(ctx, name, p)
		if err == nil {
			first, p.For, p.Until = false, 0, c.PausedUntil
		}
		return c, err
	})
}

// Resume ends a pause; see [timers.Timers.Resume].
func (s *Store) Resume(ctx context.Context, topic string) (wakebelltype.Control, error) {
	return s.control(ctx, topic, s.timers.Resume)
}

// Retune replaces the overrides of a topic; see [timers.Timers.Retune]. MaxInFlight must
// be at least the number of shards, also of those that a resharding has announced, because
// each has at least 1.
func (s *Store) Retune(ctx context.Context, topic string, set wakebelltype.Settings) (wakebelltype.Control, error) {
	var l sharding.Layout
	err := s.layouts.Renew(ctx) // another client may have divided the topic a moment ago
	if err == nil {
		l, err = s.layout(ctx, topic)
	}
	if err == nil {
		err = checkInFlight(set, max(l.Count(), l.To)) // a resharding that is announced begins with these settings
	}
	if err != nil {
		return wakebelltype.Control{}, err
	}
	return s.control(ctx, topic, func(ctx context.Context, name string) (wakebelltype.Control, error) {
		return s.timers.Retune(ctx, name, set)
	})
}

func checkInFlight(set wakebelltype.Settings, shards int) error {
	if set.MaxInFlight > 0 && set.MaxInFlight < shards {
		return fmt.Errorf("%w: MaxInFlight: %d, want at least the number of shards, %d", wakebelltype.ErrInvalid, set.MaxInFlight, shards)
	}
	return nil
}

// control changes the settings of all shards, those of the first one before the others:
// it has what applies to the topic. It does so again if the topic has got other shards
// meanwhile, to which settings may have been copied before. After an error, a repeated call
// completes the change.
func (s *Store) control(ctx context.Context, topic string, change func(ctx context.Context, name string) (wakebelltype.Control, error)) (first wakebelltype.Control, err error) {
	names, err := s.all(ctx, topic)
	for err == nil {
		changed := names
		if first, err = change(ctx, names[0]); err == nil && len(names) > 1 {
			_, err = each(ctx, names[1:], change)
		}
		if err == nil {
			err = s.layouts.Renew(ctx)
		}
		if err == nil {
			names, err = s.all(ctx, topic)
		}
		if err == nil && slices.Equal(names, changed) {
			return first, nil
		}
	}
	return first, err
}

// Control reads the pause and the overrides of a topic; see [timers.Timers.Control].
func (s *Store) Control(ctx context.Context, topic string) (wakebelltype.Control, error) {
	l, err := s.layout(ctx, topic)
	if err != nil {
		return wakebelltype.Control{}, err
	}
	return s.timers.Control(ctx, sharding.Name(topic, l.Count(), 0))
}
