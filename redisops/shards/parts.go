package shards

import (
	"context"
	"fmt"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

// Parts returns the parts of the limits of a topic that its physical topics have now; nil
// for a topic with one.
func (s *Store) Parts(ctx context.Context, topic string) (map[string]sharding.Part, error) {
	l, err := s.layout(ctx, topic)
	if err != nil || l.Plain() && l.From == 0 {
		return nil, err
	}
	now, err := s.now(ctx)
	if err != nil {
		return nil, err
	}
	parts, busy := l.Parts(topic, now), 0
	for name, p := range parts {
		if p.Role == sharding.Leaving {
			n, err := s.inFlight(ctx, name)
			if err != nil {
				return nil, err
			}
			busy += n
		}
	}
	for name, p := range parts {
		if p.Role == sharding.Arriving {
			p.Busy = busy
			parts[name] = p
		}
	}
	return parts, nil
}

// inFlight returns how many timers of a physical topic count for its MaxInFlight.
func (s *Store) inFlight(ctx context.Context, name string) (n int, err error) {
	key := s.timers.Keys().Of(name).Flow
	err = s.timers.Again(ctx, func() error {
		now, err := s.now(ctx)
		if err != nil {
			return err
		}
		after := "(" + scripts.ScoreText(now)
		pipe := s.timers.RDB.Pipeline()
		all := pipe.ZCount(ctx, key, after, "+inf")
		others := pipe.ZMScore(ctx, key, "t", "w")
		if _, err := pipe.Exec(ctx); err != nil {
			return scripts.Wrap(ctx, []string{key}, err)
		}
		n = int(all.Val())
		for _, at := range others.Val() {
			if at > float64(now.UnixMicro())/1e6 {
				n--
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("timers in flight of %q: %w", name, err)
	}
	return n, nil
}
