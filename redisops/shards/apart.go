package shards

import (
	"context"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// A call with an idempotency key writes each timer apart while the timers of a topic move:
// where a timer is written may differ when the call is repeated, so its answer must not
// depend on those of the others.

// apartPart is the part of a call that writes its first timer apart; the others follow.
const apartPart = 1 << 29

// movesAny reports whether timers of a topic of a batch move.
func (s *Store) movesAny(ctx context.Context, b timers.Batch) (bool, error) {
	for topic := range b.Topics {
		if l, err := s.layout(ctx, topic); l.Moves() || err != nil {
			return true, err
		}
	}
	return false, nil
}

// recallApart adds the results of those timers that a call with the key has written apart.
func (s *Store) recallApart(ctx context.Context, key *timers.Key, b timers.Batch, layouts map[string]sharding.Layout, done []wakebelltype.Scheduled) (err error) {
	b.Each(func(i int, topic string, e *timers.Entry) {
		l := layouts[topic]
		if err != nil || done[i].ID != "" || !l.Live || !recalls(l) {
			return
		}
		for _, name := range []string{l.Old(topic, e.ID, e.Key), l.Shard(topic, e.ID, e.Key)} {
			one := single(name, e)
			var found []wakebelltype.Scheduled
			if found, err = s.timers.Recall(ctx, key.Part(apartPart+i), one); err != nil {
				return
			}
			if found[0].ID != "" {
				done[i] = found[0]
				return
			}
		}
	})
	return err
}

func single(topic string, e *timers.Entry) timers.Batch {
	b := timers.NewBatch("", 1)
	_ = b.Add(topic, e) // it was checked
	return b
}

// writeApart writes the timers of a batch that have no result yet, one after the other.
func (s *Store) writeApart(ctx context.Context, key *timers.Key, b timers.Batch, done []wakebelltype.Scheduled) (all []wakebelltype.Scheduled, err error) {
	b.Each(func(i int, topic string, e *timers.Entry) {
		switch {
		case err != nil:
		case done != nil && done[i].ID != "":
			all = append(all, done[i])
		default:
			var stored []wakebelltype.Scheduled
			stored, err = routed(ctx, s, topic, func(sharding.Layout) ([]wakebelltype.Scheduled, error) {
				return s.writeRouted(ctx, key.Part(apartPart+i), single(topic, e), nil)
			})
			all = append(all, stored...)
		}
	})
	return all, err
}
