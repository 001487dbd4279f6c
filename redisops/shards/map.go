package shards

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mrand "math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	// Fresh is for how long a call uses the layouts that were read last. A change of a
	// layout waits for longer before it relies on it.
	Fresh = 2 * time.Second

	versionField = "" // which no topic has as its name
)

// Map is the layouts of all topics that have or had shards, as Redis stores them. It
// reads the version of the map at most once in Fresh, while it is used, and the map when
// the version has changed. If Redis does not answer, the layouts stay as they were read. If
// the user has no right to the map, topics count as without shards; if the right was taken
// away after the map was read, that is an error.
type Map struct {
	timers *timers.Timers

	current atomic.Pointer[layouts]
	reading chan struct{} // has a place for the one call that reads
	warned  atomic.Bool   // that the user has no right to the map
}

// layouts is what was read at one time.
type layouts struct {
	version string // empty: no topic has shards
	topics  map[string]sharding.Layout
	broken  map[string]error
	known   bool // they were read; false: the user has no right to the map
	read    time.Time
}

func newMap(t *timers.Timers) *Map { return &Map{timers: t, reading: make(chan struct{}, 1)} }

func (m *Map) key() string { return m.timers.Keys().Shards }

// Of returns the layout of a topic. The error concerns a Redis that could not be read
// since the start, or a layout that cannot be read.
func (m *Map) Of(ctx context.Context, topic string) (sharding.Layout, error) {
	l, err := m.get(ctx, Fresh)
	if err != nil || l.topics == nil {
		return sharding.Layout{}, err
	}
	return l.topics[topic], l.broken[topic]
}

// None reports that no topic has a layout.
func (m *Map) None(ctx context.Context) (bool, error) {
	l, err := m.get(ctx, Fresh)
	return err == nil && len(l.topics)+len(l.broken) == 0, err
}

// All returns the layouts of all topics that have one. It must not be changed.
func (m *Map) All(ctx context.Context) (map[string]sharding.Layout, error) {
	l, err := m.get(ctx, Fresh)
	if err != nil {
		return nil, err
	}
	return l.topics, nil
}

// Renew reads the map now, if it has changed.
func (m *Map) Renew(ctx context.Context) error {
	_, err := m.get(ctx, 0)
	return err
}

// get returns the layouts as they were at most fresh ago.
func (m *Map) get(ctx context.Context, fresh time.Duration) (*layouts, error) {
	began := time.Now()
	if l := m.current.Load(); l != nil && began.Sub(l.read) < fresh {
		return l, nil
	}
	select {
	case m.reading <- struct{}{}:
		defer func() { <-m.reading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if l := m.current.Load(); l != nil && (l.read.After(began) || time.Since(l.read) < fresh) { // another call has read it
		return l, nil
	}
	return m.read(ctx)
}

func (m *Map) read(ctx context.Context) (*layouts, error) {
	old := m.current.Load()
	began := time.Now()
	next, err := m.fetch(ctx, old)
	switch {
	case scripts.IsDenied(err) && (old == nil || !old.known):
		if !m.warned.Swap(true) {
			m.log().WarnContext(ctx, "topics are handled as if they had no shards: the Redis user lacks the right to the key", "key", m.key(), "err", err)
		}
		next, err = &layouts{}, nil
	case scripts.IsDenied(err): // a topic may have shards by now
	case err != nil && old != nil && ctx.Err() == nil:
		m.log().WarnContext(ctx, "layouts of topics could not be read; those that were read before are used", "key", m.key(), "err", err)
		stay := *old
		next, err = &stay, nil
		began = time.Now() // the next try is not at once
	}
	if err != nil {
		return nil, err
	}
	next.read = began
	m.current.Store(next)
	return next, nil
}

// fetch reads the map, or only its version if that has not changed.
func (m *Map) fetch(ctx context.Context, old *layouts) (next *layouts, err error) {
	err = m.timers.Again(ctx, func() error {
		next, err = m.fetchOnce(ctx, old)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("layouts of topics in %q: %w", m.key(), err)
	}
	return next, nil
}

func (m *Map) fetchOnce(ctx context.Context, old *layouts) (*layouts, error) {
	version, err := m.timers.RDB.HGet(ctx, m.key(), versionField).Result()
	if errors.Is(err, redis.Nil) {
		return &layouts{known: true}, nil
	}
	if err != nil {
		return nil, scripts.Wrap(ctx, []string{m.key()}, err)
	}
	if old != nil && old.version == version {
		same := *old
		return &same, nil
	}
	fields, err := m.timers.RDB.HGetAll(ctx, m.key()).Result()
	if err != nil {
		return nil, scripts.Wrap(ctx, []string{m.key()}, err)
	}
	next := &layouts{known: true, version: fields[versionField], topics: map[string]sharding.Layout{}, broken: map[string]error{}}
	delete(fields, versionField)
	for topic, text := range fields {
		if next.topics[topic], err = sharding.Read(text); err != nil {
			next.broken[topic] = fmt.Errorf("topic %q in %q: %w", topic, m.key(), err)
		}
	}
	return next, nil
}

// Stored reads the layout of a topic as it is stored now; the text is empty if there is
// none.
func (m *Map) Stored(ctx context.Context, topic string) (l sharding.Layout, text string, err error) {
	err = m.timers.Again(ctx, func() error {
		text, err = m.timers.RDB.HGet(ctx, m.key(), topic).Result()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		return scripts.Wrap(ctx, []string{m.key()}, err)
	})
	if err == nil && text != "" {
		l, err = sharding.Read(text)
	}
	if err != nil {
		return sharding.Layout{}, "", fmt.Errorf("layout of topic %q in %q: %w", topic, m.key(), err)
	}
	return l, text, nil
}

// change replaces the stored layout of a topic, until no other change comes between. Next
// returns the layout that is to be stored; the same one ends the change. When it returns,
// calls that were routed with another layout are refused.
func (m *Map) change(ctx context.Context, topic string, next func(sharding.Layout) (sharding.Layout, error)) (sharding.Layout, error) {
	for {
		old, before, err := m.Stored(ctx, topic)
		if err != nil {
			return sharding.Layout{}, err
		}
		to, err := next(old)
		if err == nil && to == old {
			return to, nil
		}
		switch lost, failed := m.recover(ctx, topic, old, before); {
		case failed != nil:
			return sharding.Layout{}, errors.Join(err, failed)
		case lost:
			continue
		case err != nil:
			return to, err
		}
		if !to.Routes(old) {
			to.ID, to.Number = rand.Text(), old.Number+1
		}
		stored, err := m.store(ctx, topic, before, to)
		if err != nil {
			return sharding.Layout{}, err
		}
		if !stored {
			continue
		}
		if !to.Routes(old) {
			err = m.raise(ctx, topic, to)
		}
		m.announce(ctx, old.Names(topic))
		return to, errors.Join(err, m.Renew(ctx))
	}
}

// store replaces the text of the layout of a topic in the map, if it is still before, and
// reports whether the map has the layout then.
func (m *Map) store(ctx context.Context, topic, before string, to sharding.Layout) (bool, error) {
	after := to.Text()
	version := strconv.FormatInt(mrand.Int64N(1<<62), 10)
	stored, err := m.timers.RunText(ctx, layoutScript, []string{m.key()}, topic, before, after, version)
	if err != nil {
		return false, fmt.Errorf("store the layout of topic %q: %w", topic, err)
	}
	return stored == after, nil
}

// announce tells the nodes that handle physical topics that the layout has changed, as a
// change of the settings is announced. A node that misses it follows when it reads the
// map again.
func (m *Map) announce(ctx context.Context, names []string) {
	text := "control " + strconv.FormatFloat(float64(time.Now().UnixMicro())/1e6, 'f', 6, 64)
	for _, name := range names {
		if err := m.timers.RDB.Publish(ctx, m.timers.Keys().Of(name).Hint, text).Err(); err != nil {
			m.log().DebugContext(ctx, "change of the layout not announced", "topic", name, "err", err)
		}
	}
}

// log returns the logger of the store.
func (m *Map) log() *slog.Logger {
	if m.timers.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return m.timers.Logger
}

// errShards reports a number of shards that a topic cannot have.
func errShards(format string, args ...any) error {
	return fmt.Errorf("%w: shards: "+format, append([]any{wakebelltype.ErrInvalid}, args...)...)
}
