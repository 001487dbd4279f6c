package shards

import (
	"context"
	"time"

	"github.com/wakebell/wakebell/internal/sharding"
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
// are written at once, so after an error each of them may have its part or not.
func (s *Store) Write(ctx context.Context, key *timers.Key, b timers.Batch) ([]wakebelltype.Scheduled, error) {
	done, err := s.recall(ctx, key, b)
	if err != nil {
		return nil, err
	}
	if key != nil && !key.Brief() {
		if apart, err := s.movesAny(ctx, b); apart || err != nil {
			return s.writeApart(ctx, key, b, done)
		}
	}
	divided, err := s.divided(ctx, b, done)
	if err != nil {
		return nil, err
	}
	stored, err := s.timers.Write(ctx, key, divided)
	if done == nil || len(stored) == 0 && err != nil {
		return stored, err
	}
	for i := range done {
		if done[i].ID == "" {
			done[i], stored = stored[0], stored[1:]
		}
	}
	return done, err
}

// recall returns what a call with the key has stored before the layouts of its topics
// changed; nil if nothing can be.
func (s *Store) recall(ctx context.Context, key *timers.Key, b timers.Batch) ([]wakebelltype.Scheduled, error) {
	if key == nil || key.Brief() {
		return nil, nil
	}
	changed := false
	layouts := map[string]sharding.Layout{}
	for topic := range b.Topics {
		l, err := s.layout(ctx, topic)
		if err != nil {
			return nil, err
		}
		layouts[topic], changed = l, changed || recalls(l)
	}
	if !changed {
		return nil, nil
	}
	done, err := s.timers.Recall(ctx, key, b.Divided(func(_ int, topic string, e *timers.Entry) string {
		l := layouts[topic]
		if recalls(l) {
			l.Shards = l.From
		}
		return l.Shard(topic, e.ID, e.Key)
	}))
	if err != nil {
		return nil, err
	}
	return done, s.recallApart(ctx, key, b, layouts, done)
}

// recalls reports whether the shards before may have answers to calls with idempotency
// keys. The clock of this machine is good enough, because clients repeat calls soon.
func recalls(l sharding.Layout) bool {
	return l.From > 0 && time.Since(time.UnixMilli(l.Since)) < timers.KeyLife
}

// Divided returns a batch with the physical topics of its timers, for
// [timers.Timers.Write].
func (s *Store) Divided(ctx context.Context, b timers.Batch) (timers.Batch, error) {
	return s.divided(ctx, b, nil)
}

// divided is Divided without the timers that have a result.
func (s *Store) divided(ctx context.Context, b timers.Batch, done []wakebelltype.Scheduled) (timers.Batch, error) {
	placed := map[string]sharding.Layout(nil) // the topics that are not plain
	moves := false
	for topic := range b.Topics {
		l, err := s.layout(ctx, topic)
		if err != nil {
			return timers.Batch{}, err
		}
		if !l.Plain() {
			if placed == nil {
				placed = map[string]sharding.Layout{}
			}
			placed[topic] = l
			moves = moves || l.Moves()
		}
	}
	if placed == nil && done == nil {
		return b, nil
	}
	var routes map[int]string
	var written func(context.Context)
	if moves {
		var err error
		if routes, written, err = s.routes(ctx, b, placed); err != nil {
			return timers.Batch{}, err
		}
	}
	keyed := map[string]bool{} // topics of which the map does not say yet that timers have keys
	divided := b.Divided(func(i int, topic string, e *timers.Entry) string {
		if done != nil && done[i].ID != "" {
			return ""
		}
		l, ok := placed[topic]
		if !ok {
			return topic
		}
		if e.Key != "" && !l.Keyed {
			keyed[topic] = true
		}
		if name, known := routes[i]; known {
			return name
		}
		return l.Shard(topic, e.ID, e.Key)
	})
	divided.After(written)
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
