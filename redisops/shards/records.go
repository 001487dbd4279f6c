package shards

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// History reads a page of the attempts of all shards, the oldest first; see
// [timers.Timers.History].
func (s *Store) History(ctx context.Context, topic string, f wakebelltype.HistoryFilter, after string, limit int) ([]wakebelltype.Attempt, string, error) {
	names, err := s.all(ctx, topic)
	if err != nil {
		return nil, "", err
	}
	if len(names) == 1 {
		return s.timers.History(ctx, names[0], f, after, limit)
	}
	read := func(ctx context.Context, name, after string) ([]wakebelltype.Attempt, string, error) {
		return s.timers.History(ctx, name, f, after, limit)
	}
	return walk(ctx, names, topic, after, cmp.Or(max(limit, 0), math.MaxInt), read, cursorOf)
}

// LastHistory returns the newest n attempts of all shards; see
// [timers.Timers.LastHistory].
func (s *Store) LastHistory(ctx context.Context, topic string, f wakebelltype.HistoryFilter, n int) ([]wakebelltype.Attempt, error) {
	names, err := s.all(ctx, topic)
	if err != nil {
		return nil, err
	}
	lists, err := each(ctx, names, func(ctx context.Context, name string) ([]wakebelltype.Attempt, error) {
		attempts, err := s.timers.LastHistory(ctx, name, f, n)
		for i := range attempts {
			attempts[i].Cursor = sharding.Place(attempts[i].Cursor, name)
		}
		return attempts, err
	})
	if err != nil {
		return nil, err
	}
	if len(lists) == 1 {
		return lists[0], nil
	}
	return newest(lists, n, atEnd), nil
}

// Throughput returns the counts of all shards; see [timers.Timers.Throughput].
func (s *Store) Throughput(ctx context.Context, topic string, since time.Duration) (wakebelltype.Throughput, error) {
	names, err := s.all(ctx, topic)
	if err != nil {
		return wakebelltype.Throughput{}, err
	}
	all, err := each(ctx, names, func(ctx context.Context, name string) (wakebelltype.Throughput, error) {
		return s.timers.Throughput(ctx, name, since)
	})
	if err != nil {
		return wakebelltype.Throughput{}, err
	}
	// A step may have begun between two shards; the first answer has the steps.
	sum := all[0]
	steps := map[time.Time]int{}
	for i, p := range sum.Points {
		steps[p.At] = i
	}
	for _, t := range all[1:] {
		for _, p := range t.Points {
			if i, ok := steps[p.At]; ok {
				sum.Points[i].Add(p)
			}
		}
	}
	return sum, nil
}

// DeadLetters reads a page of dead letters of all shards, the oldest first; see
// [timers.Timers.DeadLetters].
func (s *Store) DeadLetters(ctx context.Context, topic string, f wakebelltype.DeadFilter, after string, limit int) ([]timers.DeadLetter, string, error) {
	names, f, err := s.deadOf(ctx, topic, f)
	if err != nil {
		return nil, "", err
	}
	if len(names) == 1 && names[0] == topic {
		return s.timers.DeadLetters(ctx, topic, f, after, limit)
	}
	read := func(ctx context.Context, name, after string) ([]timers.DeadLetter, string, error) {
		return s.timers.DeadLetters(ctx, name, f, after, limit)
	}
	return walk(ctx, names, topic, after, cmp.Or(limit, layout.DefaultPage), read, entryOf)
}

// deadOf returns the physical topics that may have dead letters which a filter selects,
// and the filter for them.
func (s *Store) deadOf(ctx context.Context, topic string, f wakebelltype.DeadFilter) ([]string, wakebelltype.DeadFilter, error) {
	names, err := s.all(ctx, topic)
	if err != nil || f.Entry == "" {
		return names, f, err
	}
	var name string
	if f.Entry, name = sharding.Placed(f.Entry, topic); !slices.Contains(names, name) {
		return nil, f, fmt.Errorf("%w: dead letter %q of %q", wakebelltype.ErrNotFound, sharding.Place(f.Entry, name), topic)
	}
	return []string{name}, f, nil
}

// LastDead reads the last n dead letters of all shards, the oldest of them first; see
// [timers.Timers.LastDead].
func (s *Store) LastDead(ctx context.Context, topic string, n int) ([]timers.DeadLetter, error) {
	names, err := s.all(ctx, topic)
	if err != nil {
		return nil, err
	}
	lists, err := each(ctx, names, func(ctx context.Context, name string) ([]timers.DeadLetter, error) {
		letters, err := s.timers.LastDead(ctx, name, n)
		for i := range letters {
			letters[i].Entry = sharding.Place(letters[i].Entry, name)
		}
		return letters, err
	})
	if err != nil {
		return nil, err
	}
	return newest(lists, n, atDeath), nil
}

// DeadLetter reads one dead letter; see [timers.Timers.DeadLetter].
func (s *Store) DeadLetter(ctx context.Context, topic, entry string) (timers.DeadLetter, error) {
	if entry == "" {
		return timers.DeadLetter{}, fmt.Errorf("%w: entry: empty", wakebelltype.ErrInvalid)
	}
	names, f, err := s.deadOf(ctx, topic, wakebelltype.DeadFilter{Entry: entry})
	if err != nil {
		return timers.DeadLetter{}, err
	}
	d, err := s.timers.DeadLetter(ctx, names[0], f.Entry)
	d.Entry = entry
	return d, err
}

// DeleteDead deletes dead letters of all shards; see [timers.Timers.DeleteDead].
func (s *Store) DeleteDead(ctx context.Context, topic string, f wakebelltype.DeadFilter) (deleted int64, err error) {
	names, f, err := s.deadOf(ctx, topic, f)
	if err != nil {
		return 0, err
	}
	counts, err := each(ctx, names, func(ctx context.Context, name string) (int64, error) { return s.timers.DeleteDead(ctx, name, f) })
	for _, n := range counts {
		deleted += n
	}
	return deleted, err
}
