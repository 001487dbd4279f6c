package shards

import (
	"context"

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
	b, err := s.Divided(ctx, b)
	if err != nil {
		return nil, err
	}
	return s.timers.Write(ctx, key, b)
}

// Divided returns a batch with the physical topics of its timers, for
// [timers.Timers.Write]. It takes over the batch.
func (s *Store) Divided(ctx context.Context, b timers.Batch) (timers.Batch, error) {
	placed := map[string]sharding.Layout(nil) // the topics that are not plain
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
		}
	}
	if placed == nil {
		return b, nil
	}
	keyed := map[string]bool{} // topics of which the map does not say yet that timers have keys
	divided := b.Divided(func(topic string, e *timers.Entry) string {
		l, ok := placed[topic]
		if !ok {
			return topic
		}
		if e.Key != "" && !l.Keyed {
			keyed[topic] = true
		}
		return l.Shard(topic, e.ID, e.Key)
	})
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
