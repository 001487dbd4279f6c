package shards

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/wakebell/wakebell/internal/sharding"
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
