package shards

import (
	"context"
	"fmt"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Repair repairs one shard of a topic after the other; see [timers.Fenced.Repair]. A payload
// belongs to the shard that has it, because the name of a shard has their number. The error
// wraps [wakebelltype.ErrInvalid] while the topic is being resharded: its timers then have a part
// of their data elsewhere.
func (s *Store) Repair(ctx context.Context, topic string, o wakebelltype.RepairOptions) (done wakebelltype.Repaired, err error) {
	_, err = routed(ctx, s, topic, func(l sharding.Layout) (bool, error) {
		if l.Moves() {
			return false, fmt.Errorf("%w: topic %q is being resharded; repair it when that has ended", wakebelltype.ErrInvalid, topic)
		}
		if !o.Apply { // what another layout has counted is counted again
			done = wakebelltype.Repaired{}
		}
		for _, name := range l.Names(topic) {
			part, err := s.at(l).Repair(ctx, name, o)
			done.Add(part)
			if err != nil {
				return false, err
			}
		}
		return true, nil
	})
	return done, err
}
