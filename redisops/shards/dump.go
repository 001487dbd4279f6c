package shards

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Dump reads all of a topic, part by part. While it does, the number of its shards must
// not change, and it must not be moved to another Redis; End checks it.
type Dump struct {
	Now     time.Time // when it began, by Redis's clock
	Shards  int
	Control wakebelltype.Control
	Timers  int64 // when it began
	Dead    int64

	store  *Store
	topic  string
	layout sharding.Layout
	names  []string
}

// Dump begins to read all of a topic. The error wraps [wakebelltype.ErrInvalid] if its timers
// are being moved.
func (s *Store) Dump(ctx context.Context, topic string) (*Dump, error) {
	l, now, err := s.resting(ctx, topic)
	if err != nil {
		return nil, err
	}
	d := &Dump{Now: now, Shards: l.Count(), store: s, topic: topic, layout: l, names: l.Polled(topic, now)}
	if err := s.complete(ctx, topic, d.names); err != nil {
		return nil, err
	}
	if d.Control, err = s.timers.Control(ctx, d.names[0]); err != nil {
		return nil, err
	}
	for _, name := range d.names {
		st, err := s.timers.Stats(ctx, name)
		if err != nil {
			return nil, err
		}
		d.Timers, d.Dead = d.Timers+st.Total, d.Dead+st.Dead
	}
	return d, nil
}

// resting returns the layout of a topic whose timers are not moved now, and the time by
// Redis's clock.
func (s *Store) resting(ctx context.Context, topic string) (l sharding.Layout, now time.Time, err error) {
	if l, err = s.Layout(ctx, topic); err != nil {
		return l, now, err
	}
	if l.To > 0 || l.Moves() {
		return l, now, errShards("topic %q: its timers are being moved to %d shards; finish that first", topic, max(l.To, l.Count()))
	}
	now, err = s.now(ctx)
	return l, now, err
}

// EachTimer returns an iterator over all timers; see [timers.Timers.Scan].
func (d *Dump) EachTimer(ctx context.Context) iter.Seq2[timers.Stored, error] {
	return func(yield func(timers.Stored, error) bool) {
		for _, name := range d.names {
			for t, err := range d.store.timers.Scan(ctx, name) {
				if !yield(t, err) || err != nil {
					return
				}
			}
		}
	}
}

// EachDead returns an iterator over the dead letters that there are, the oldest of each
// shard first.
func (d *Dump) EachDead(ctx context.Context) iter.Seq2[timers.DeadLetter, error] {
	return func(yield func(timers.DeadLetter, error) bool) {
		for _, name := range d.names {
			for after, more := "", true; more; {
				page, next, err := d.store.timers.DeadLetters(ctx, name, wakebelltype.DeadFilter{}, after, 0)
				if err != nil {
					yield(timers.DeadLetter{}, err)
					return
				}
				for _, letter := range page {
					if !yield(letter, nil) {
						return
					}
				}
				after, more = next, next != ""
			}
		}
	}
}

// Mark is the mark of a timer with Once.
type Mark struct {
	ID      string
	Keyed   bool      // the timer had a key
	Due     time.Time // the instant for which the timer was scheduled
	Window  time.Duration
	Expires time.Time // when the window is over
}

// EachMark returns an iterator over the marks. It scans all keys of Redis. An id may be
// yielded several times.
func (d *Dump) EachMark(ctx context.Context) iter.Seq2[Mark, error] {
	return func(yield func(Mark, error) bool) {
		ended := errors.New("ended")
		err := d.store.eachMark(ctx, d.names, func(name, id string) error {
			m, found, err := d.store.readMark(ctx, name, id)
			if err == nil && found && !yield(m, nil) {
				return ended
			}
			return err
		})
		if err != nil && !errors.Is(err, ended) {
			yield(Mark{}, err)
		}
	}
}

// readMark reads the mark of an id in a physical topic. One that cannot be read counts as
// absent, as lua/schedule.lua has it.
func (s *Store) readMark(ctx context.Context, name, id string) (m Mark, found bool, err error) {
	at, text := s.timers.Keys().Of(name).Mark(id), ""
	var life time.Duration
	var now time.Time
	err = s.timers.Again(ctx, func() error {
		pipe := s.timers.RDB.Pipeline()
		value, left, clock := pipe.Get(ctx, at), pipe.PTTL(ctx, at), pipe.Time(ctx)
		_, err := pipe.Exec(ctx)
		if text, life, now = value.Val(), left.Val(), clock.Val(); errors.Is(err, redis.Nil) {
			return nil
		}
		return scripts.Wrap(ctx, []string{at}, err)
	})
	if err != nil {
		return m, false, fmt.Errorf("read the mark of %q in %q: %w", id, name, err)
	}
	due, rest, _ := strings.Cut(text, " ")
	window, key, _ := strings.Cut(rest, " ")
	micros, bad := strconv.ParseInt(window, 10, 64)
	if m.Due = scripts.ReadInstant(due); bad != nil || m.Due.IsZero() || life <= 0 {
		return m, false, nil
	}
	return Mark{ID: id, Keyed: key != "", Due: m.Due, Window: scripts.Micros(micros), Expires: now.Add(life)}, true, nil
}

// End reports as an error that timers were moved meanwhile, which it wraps as
// [wakebelltype.ErrInvalid].
func (d *Dump) End(ctx context.Context) error {
	l, _, err := d.store.resting(ctx, d.topic)
	if err == nil && (l.Count() != d.layout.Count() || l.From != d.layout.From) {
		err = fmt.Errorf("%w: shards: topic %q had %d when the export began and has %d now; begin again",
			wakebelltype.ErrInvalid, d.topic, d.layout.Count(), l.Count())
	}
	if err == nil {
		err = d.store.complete(ctx, d.topic, d.names)
	}
	return err
}

// complete reports as an error that timers have left a topic for another Redis and may
// come back.
func (s *Store) complete(ctx context.Context, topic string, names []string) error {
	for _, name := range names {
		if n, err := s.exist(ctx, s.timers.Keys().Of(name).Leaving()); err != nil || n > 0 {
			if err == nil {
				err = fmt.Errorf("%w: topic %q: timers are on their way to another Redis; finish that move first", wakebelltype.ErrInvalid, topic)
			}
			return err
		}
	}
	return nil
}

// exist returns how many of some keys of a physical topic exist.
func (s *Store) exist(ctx context.Context, keys ...string) (n int64, err error) {
	err = s.timers.Again(ctx, func() error {
		n, err = s.timers.RDB.Exists(ctx, keys...).Result()
		return scripts.Wrap(ctx, keys, err)
	})
	if err != nil {
		return 0, fmt.Errorf("look for %q: %w", keys[0], err)
	}
	return n, nil
}
