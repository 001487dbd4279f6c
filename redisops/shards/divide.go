package shards

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// CheckCount checks a number of shards for a topic.
func CheckCount(topic string, n int) error {
	switch {
	case n < 1 || n > sharding.MaxShards:
		return errShards("%d, want 1 to %d", n, sharding.MaxShards)
	case n > 1 && len(topic)+sharding.MaxSuffix > wakebelltype.MaxName:
		return fmt.Errorf("%w: topic: %d bytes, at most %d with shards", wakebelltype.ErrInvalid, len(topic), wakebelltype.MaxName-sharding.MaxSuffix)
	}
	return layout.CheckLogical(topic)
}

// Layout returns the layout of a topic as it is stored now.
func (s *Store) Layout(ctx context.Context, topic string) (sharding.Layout, error) {
	if err := layout.CheckLogical(topic); err != nil {
		return sharding.Layout{}, err
	}
	l, _, err := s.layouts.Stored(ctx, topic)
	return l, err
}

// Divide gives a topic that has no data a number of shards, and returns the layout that
// applies: the stored one if it differs, or that of one shard if the topic has data or is
// being moved to another Redis. The
// place where timers were before is handled until it was empty for a while, so a timer
// that a client stores there meanwhile is delivered.
func (s *Store) Divide(ctx context.Context, topic string, n int) (sharding.Layout, error) {
	if err := CheckCount(topic, n); err != nil {
		return sharding.Layout{}, err
	}
	return s.layouts.change(ctx, topic, func(l sharding.Layout) (sharding.Layout, error) {
		if l.Count() == n || l.Moving || l.To > 0 {
			return l, nil
		}
		for _, name := range l.All(topic) {
			if used, err := s.used(ctx, name); used || err != nil {
				return l, err
			}
		}
		now, err := s.now(ctx)
		if err != nil {
			return l, err
		}
		if moving, err := s.movesAway(ctx, topic, l, now); moving != nil || err != nil {
			return l, err
		}
		return l.Next(n, now), s.copyControl(ctx, l.Names(topic)[0], sharding.Names(topic, n))
	})
}

// copyControl gives shards the pause and the overrides that a physical topic has, and no
// others.
func (s *Store) copyControl(ctx context.Context, from string, names []string) error {
	c, err := s.timers.Control(ctx, from)
	if err == nil {
		err = checkInFlight(c.Settings, len(names))
	}
	if err != nil {
		return err
	}
	_, err = each(ctx, names, func(ctx context.Context, name string) (now wakebelltype.Control, err error) {
		if now, err = s.timers.Control(ctx, name); err == nil && now.Settings != c.Settings {
			now, err = s.timers.Retune(ctx, name, c.Settings)
		}
		switch {
		case err != nil:
		case c.Paused:
			now, err = s.timers.PauseUntil(ctx, name, PauseOf(c))
			err = WithoutEnded(c, err)
		case now.Paused:
			now, err = s.timers.Resume(ctx, name)
		}
		return now, err
	})
	return err
}

// PauseOf is the pause of settings.
func PauseOf(c wakebelltype.Control) wakebelltype.Pause {
	return wakebelltype.Pause{By: c.PausedBy, Reason: c.Reason, Until: c.PausedUntil}
}

// WithoutEnded returns the error of giving a topic the pause of another, but none if that
// pause has ended by itself meanwhile.
func WithoutEnded(c wakebelltype.Control, err error) error {
	if !c.PausedUntil.IsZero() && errors.Is(err, wakebelltype.ErrInvalid) {
		return nil
	}
	return err
}

// settleAfter is how long after a change the shards before it may still be written to by
// a client that has not read the map since, with a margin for slow commands.
const settleAfter = Fresh + 3*time.Second

// Settle ends the change of the layout of a topic if nothing is left where timers were
// before, and takes the end back if something has come since. Nodes call it now and then.
func (s *Store) Settle(ctx context.Context, topic string) (sharding.Layout, error) {
	return s.layouts.change(ctx, topic, func(l sharding.Layout) (sharding.Layout, error) {
		if l.From == 0 || l.From == l.Count() || l.To > 0 {
			return l, nil
		}
		now, err := s.now(ctx)
		if err != nil || !l.Lingers(now) || now.Sub(time.UnixMilli(l.Since)) < settleAfter {
			return l, err
		}
		left := false
		for _, name := range sharding.Names(topic, l.From) {
			if left, err = s.used(ctx, name); left || err != nil {
				break
			}
		}
		switch {
		case err != nil || left == l.Moving:
			return l, err
		case left:
			l.Moving, l.Since = true, now.UnixMilli()
			return l, nil
		default:
			if err = s.moveRuns(ctx, topic, l); err != nil {
				return l, err
			}
			if err = s.sweepLeft(ctx, topic, l); err != nil {
				return l, err
			}
			if l.Live {
				err = s.moveMarks(ctx, topic, l)
			}
			if scripts.IsDenied(err) {
				s.layouts.log().WarnContext(ctx, "marks of Once stay where the topic was: the Redis user may not scan keys", "topic", topic, "err", err)
				err = nil
			}
			if err != nil {
				return l, err
			}
			if rests, err := s.rest(ctx, topic, l); !rests || err != nil {
				return l, err
			}
			return l.Settled(now), nil
		}
	})
}

// rest copies the tokens of keys where the timers of a topic were before, and reports whether
// no call writes there any more. A call that is about to has pinned its timers, because
// others of their keys, or tokens of these, were there a moment ago.
func (s *Store) rest(ctx context.Context, topic string, l sharding.Layout) (rests bool, err error) {
	names, mark := sharding.Names(topic, l.From), rand.Text()
	ask := func(ends int) (bool, error) {
		answers, err := each(ctx, names, func(ctx context.Context, name string) (string, error) {
			k := s.timers.Keys().Of(name)
			keys := []string{k.Timeline, k.Payloads, k.Moving(), k.Leaving(), k.Pins(), k.KeyStates, k.KeyOrder, k.KeyRates}
			answer, err := s.timers.RunText(ctx, restScript, keys, mark, ends)
			if scripts.IsDenied(err) { // such a user pins nothing there
				return "1", nil
			}
			return answer, err
		})
		return !slices.Contains(answers, "0"), err
	}
	if rests, err = ask(0); !rests || err != nil {
		return false, err
	}
	if err = s.toShards(topic, l).copyAllRates(ctx, names); err != nil {
		return false, err
	}
	return ask(1)
}

// sweepLeft removes what is stored of keys where the timers of a topic were before: no node
// sweeps there when it no longer polls.
func (s *Store) sweepLeft(ctx context.Context, topic string, l sharding.Layout) error {
	_, err := each(ctx, sharding.Names(topic, l.From), func(ctx context.Context, name string) (bool, error) {
		return true, s.timers.Source(name, timers.SourceOptions{}).SweepKeys(ctx, exchange.Flow{})
	})
	return err
}

// used reports whether a physical topic has timers or dead letters, or some that have left
// it and not arrived.
func (s *Store) used(ctx context.Context, name string) (used bool, err error) {
	k := s.timers.Keys().Of(name)
	n, err := s.exist(ctx, k.Timeline, k.Payloads, k.Moving(), k.Leaving())
	if used = n > 0; err == nil && !used {
		used, err = s.hasDead(ctx, name)
	}
	if err == nil && !used {
		var leaving string
		leaving, err = s.partlyLeft(ctx, k.Taken())
		used = leaving != ""
	}
	if err != nil {
		return false, fmt.Errorf("look for timers of %q: %w", name, err)
	}
	return used, nil
}

// hasDead reports whether a physical topic has dead letters. The stream stays when the last
// one is redriven or deleted, so that the ids of its entries do not repeat.
func (s *Store) hasDead(ctx context.Context, name string) (has bool, err error) {
	key := s.timers.Keys().Of(name).Dead
	err = s.timers.Again(ctx, func() error {
		n, err := s.timers.RDB.XLen(ctx, key).Result()
		has = n > 0
		return scripts.Wrap(ctx, []string{key}, err)
	})
	if err != nil {
		return false, fmt.Errorf("look for %q: %w", key, err)
	}
	return has, nil
}

// now returns the time by Redis's clock.
func (s *Store) now(ctx context.Context) (now time.Time, err error) {
	err = s.timers.Again(ctx, func() error {
		now, err = s.timers.RDB.Time(ctx).Result()
		return scripts.Wrap(ctx, nil, err)
	})
	return now, err
}
