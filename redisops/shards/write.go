package shards

import (
	"context"
	"errors"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Schedule writes timers of one topic; see [timers.Timers.Schedule].
func (s *Store) Schedule(ctx context.Context, topic string, entries ...timers.Entry) ([]wakebelltype.Scheduled, error) {
	b := timers.NewBatch("", len(entries))
	for i := range entries {
		if err := b.Add(topic, &entries[i]); err != nil {
			return nil, err
		}
	}
	return s.Write(ctx, nil, b)
}

// Write stores the timers of a batch; see [timers.Timers.Write]. The shards of a topic
// are written at once, so after an error each of them may have its part or not. Timers that
// a fence refuses are stored with the layouts that their topics have by then.
func (s *Store) Write(ctx context.Context, key *timers.Key, b timers.Batch) (done []wakebelltype.Scheduled, err error) {
	for range maxRefusals {
		var divided timers.Batch
		divided, done, err = s.divided(ctx, key, b, done)
		switch {
		case err != nil:
		case done == nil:
			done, err = s.timers.Write(ctx, key, divided)
		default:
			var stored []wakebelltype.Scheduled
			stored, err = s.timers.Write(ctx, key, divided)
			done = filled(done, stored, err)
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

// filled adds the results of those timers of a batch that had none to those of the others;
// nil after an error without results.
func filled(done, stored []wakebelltype.Scheduled, err error) []wakebelltype.Scheduled {
	if len(stored) == 0 && err != nil {
		return nil
	}
	for i := range done {
		if done[i].ID == "" {
			done[i], stored = stored[0], stored[1:]
		}
	}
	return done
}

// agreeAll reads the layouts of the topics of a batch again.
func (s *Store) agreeAll(ctx context.Context, b timers.Batch) error {
	for topic := range b.Topics {
		if err := s.layouts.agree(ctx, topic); err != nil {
			return err
		}
	}
	return nil
}

// routing are the layouts with which the timers of a batch are routed, by topic.
type routing struct {
	placed map[string]sharding.Layout // of the topics that are not plain
	fences map[string]sharding.Layout // of those that were divided once
	moves  bool                       // timers of one of them move
}

// routing reads the layouts of the topics of a batch, and sets their fences.
func (s *Store) routing(ctx context.Context, b *timers.Batch) (r routing, err error) {
	now, err := s.layouts.get(ctx, Fresh)
	if err != nil {
		return r, err
	}
	return r, b.Fence(func(topic string) (*timers.Fence, error) {
		l, known := now.topics[topic]
		if !known {
			return plainFence, nil
		}
		if l.ID != "" {
			if r.fences == nil {
				r.fences = map[string]sharding.Layout{}
			}
			r.fences[topic] = l
		}
		if !l.Plain() {
			if r.placed == nil {
				r.placed = map[string]sharding.Layout{}
			}
			r.placed[topic] = l
			r.moves = r.moves || l.Moves()
		}
		return fenceOf(l), now.broken[topic]
	})
}

// fenceOf returns the fence of calls that are routed with a layout.
func fenceOf(l sharding.Layout) *timers.Fence {
	if l.ID == "" {
		return plainFence
	}
	return &timers.Fence{Layout: l.ID}
}

var plainFence = &timers.Fence{}

// divided returns a batch with the physical topics of its timers, for
// [timers.Timers.Write], without the timers that have a result, and the results. With an
// idempotency key it first looks for those of the call that were stored elsewhere.
func (s *Store) divided(ctx context.Context, key *timers.Key, b timers.Batch, done []wakebelltype.Scheduled) (timers.Batch, []wakebelltype.Scheduled, error) {
	r, err := s.routing(ctx, &b)
	if err != nil {
		return timers.Batch{}, done, err
	}
	var routes pinnedRoutes
	if r.moves {
		if routes, err = s.routes(ctx, b, r.placed); err != nil {
			return timers.Batch{}, done, err
		}
	}
	if key != nil && r.fences != nil { // after the pins: what has left a place by now is answered there by now
		if done, err = s.recall(ctx, key, b, r.fences, done, sharding.Layout.Answered); err != nil {
			s.unpin(ctx, routes)
			return timers.Batch{}, done, err
		}
	}
	if r.placed == nil && done == nil {
		return b, nil, nil
	}
	divided, err := s.placed(ctx, b, done, r, routes)
	return divided, done, err
}

// placed returns a batch with the physical topics of those of its timers that have no
// result yet.
func (s *Store) placed(ctx context.Context, b timers.Batch, done []wakebelltype.Scheduled, r routing, routes pinnedRoutes) (timers.Batch, error) {
	keyed := map[string]bool{} // topics of which the map does not say yet that timers have keys
	divided := b.Divided(func(i int, topic string, e *timers.Entry) string {
		if done != nil && done[i].ID != "" {
			return ""
		}
		l, ok := r.placed[topic]
		if !ok {
			return topic
		}
		if e.Key != "" && !l.Keyed {
			keyed[topic] = true
		}
		if name, known := routes.names[i]; known {
			return name
		}
		return l.Shard(topic, e.ID, e.Key)
	})
	_ = divided.Fence(func(name string) (*timers.Fence, error) { // it has none
		f := fenceOf(r.fences[sharding.Topic(name)])
		if _, pinned := routes.fields[name]; pinned {
			f = &timers.Fence{Layout: f.Layout, Pins: routes.call}
		}
		return f, nil
	})
	if len(routes.fields) > 0 {
		divided.After(func(ctx context.Context) { s.unpin(ctx, routes) })
	}
	for topic := range keyed {
		if err := s.markKeyed(ctx, topic); err != nil {
			return timers.Batch{}, err
		}
	}
	return divided, nil
}

// markKeyed stores that timers of a topic have keys, before the first of them is written.
func (s *Store) markKeyed(ctx context.Context, topic string) error {
	_, err := s.layouts.change(ctx, topic, func(l sharding.Layout) (sharding.Layout, error) {
		l.Keyed = l.Shards > 0 // a topic without a layout has one shard
		return l, nil
	})
	return err
}
