package shards

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// The answer to a call with an idempotency key is stored for each timer in the physical
// topic that has carried it out, so that both are one script. Where that is depends on the
// layout. A repeated call looks there in all layouts with which an answer may have been
// stored that still lives, and carries out only what has none.

// recalled is what a physical topic is asked for: timers or ids of a call, and their indexes.
type recalled[T any] struct {
	fence  *timers.Fence // of the topic; nil: no call writes there any more
	items  []T
	places []int
}

// recalledIn adds an item of a call to the physical topics with n shards that may have its
// answer.
func recalledIn[T any](asked map[string]*recalled[T], l sharding.Layout, n int, i int, item T, names ...string) {
	for _, name := range names {
		r := asked[name]
		if r == nil {
			r = &recalled[T]{}
			if n == 1 || n == l.Count() || n == l.From || n == l.To { // see records
				r.fence = fenceOf(l)
			}
			asked[name] = r
		}
		r.items, r.places = append(r.items, item), append(r.places, i)
	}
}

// from returns the store for asking.
func (r *recalled[T]) from(s *Store) timers.Fenced { return s.timers.WithFence(r.fence) }

// Recall returns the results of those timers of a batch that a call of Write with the key has
// stored; the others have no ID, and there are no results if there are no such timers. The
// key is one of [timers.Key.Each].
func (s *Store) Recall(ctx context.Context, key *timers.Key, b timers.Batch) (done []wakebelltype.Scheduled, err error) {
	for range maxRefusals {
		var r routing
		if r, err = s.routing(ctx, &b); err == nil {
			done, err = s.recall(ctx, key, b, r.fences, nil, func(l sharding.Layout, now time.Time) []int {
				if counts := l.Answered(now); counts != nil {
					return counts
				}
				return []int{l.Count()}
			})
		}
		if !errors.Is(err, scripts.ErrStaleLayout) {
			return done, err
		}
		if err := s.agreeAll(ctx, b); err != nil {
			return nil, err
		}
	}
	return nil, err
}

// recall adds to the results of a batch those that a call with the key has stored, in the
// numbers of shards that in returns; nil if there are none.
func (s *Store) recall(
	ctx context.Context, key *timers.Key, b timers.Batch, layouts map[string]sharding.Layout, done []wakebelltype.Scheduled, in func(sharding.Layout, time.Time) []int,
) ([]wakebelltype.Scheduled, error) {
	asked, size, now := map[string]*recalled[timers.Entry]{}, 0, time.Now()
	b.Each(func(i int, topic string, e *timers.Entry) {
		size++
		l := layouts[topic]
		for _, n := range in(l, now) { // this clock is good enough: clients repeat calls soon
			recalledIn(asked, l, n, i, *e, sharding.Name(topic, n, sharding.ShardOf(e.ID, e.Key, n)))
		}
	})
	names := slices.Sorted(maps.Keys(asked))
	answers, err := each(ctx, names, func(ctx context.Context, name string) ([]wakebelltype.Scheduled, error) {
		return asked[name].from(s).RecallWrite(ctx, name, key, asked[name].items)
	})
	if err != nil {
		return done, err
	}
	for i, name := range names {
		for j, at := range asked[name].places {
			if answers[i][j].ID == "" {
				continue
			}
			if done == nil {
				done = make([]wakebelltype.Scheduled, size)
			}
			if done[at].ID == "" {
				done[at] = answers[i][j]
			}
		}
	}
	return done, nil
}

// recall stores what a call with the key has found of ids.
func (c *cancelling) recall(ctx context.Context) error {
	asked := map[string]*recalled[string]{}
	counts := c.layout.Answered(time.Now())
	if counts == nil && c.layout.Keyed { // an id may be in several shards
		counts = []int{c.layout.Count()}
	}
	for _, n := range counts {
		all := sharding.Names(c.topic, n)
		for i, id := range c.ids {
			names := all
			if !c.layout.Keyed {
				own := sharding.ShardOf(id, "", n)
				names = all[own : own+1]
			}
			recalledIn(asked, c.layout, n, i, id, names...)
		}
	}
	names := slices.Sorted(maps.Keys(asked))
	answers, err := each(ctx, names, func(ctx context.Context, name string) ([]wakebelltype.Presence, error) {
		return asked[name].from(c.store).RecallCancel(ctx, name, c.key, asked[name].items...)
	})
	for i, name := range names {
		for j, presence := range answers[i] {
			at := asked[name].places[j]
			c.found[at] = max(c.found[at], presence)
		}
	}
	return err
}
