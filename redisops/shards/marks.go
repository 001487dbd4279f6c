package shards

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

// A mark of Once outlives its timer, so it is moved by itself: when its id is scheduled
// again, and when all timers are moved, by a scan of the keys of Redis.

// moveMark moves the mark of an id, if there is one, to physical topics. A mark that is
// there stays as it is.
func (s *Store) moveMark(ctx context.Context, from, id string, to ...string) error {
	old := s.timers.Keys().Of(from).Mark(id)
	err := s.timers.Again(ctx, func() error {
		text, err := s.timers.RDB.Get(ctx, old).Result()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		var life time.Duration
		if err == nil {
			life, err = s.timers.RDB.PTTL(ctx, old).Result()
		}
		for _, name := range to {
			if err == nil && life > 0 {
				err = s.timers.RDB.SetNX(ctx, s.timers.Keys().Of(name).Mark(id), text, life).Err()
			}
		}
		if err == nil {
			err = s.timers.RDB.Del(ctx, old).Err()
		}
		return scripts.Wrap(ctx, []string{old}, err)
	})
	if err != nil {
		return fmt.Errorf("move the mark of %q from %q: %w", id, from, err)
	}
	return nil
}

// moveMarks moves the marks of all ids that the shards before have. The key of a timer that
// was handled is not known, so its mark goes to all shards if timers have keys.
func (s *Store) moveMarks(ctx context.Context, topic string, l sharding.Layout) error {
	servers, err := s.timers.Nodes(ctx)
	if err != nil {
		return fmt.Errorf("look for marks of %q: %w", topic, scripts.Wrap(ctx, nil, err))
	}
	for _, name := range sharding.Names(topic, l.From) {
		prefix := s.timers.Keys().Of(name).Mark("")
		for _, server := range servers {
			for cursor := uint64(0); ; {
				var found []string
				err := s.timers.Again(ctx, func() (err error) {
					found, cursor, err = server.ScanType(ctx, cursor, escapeGlob(prefix)+"*", layout.ScanPage, "string").Result()
					return scripts.Wrap(ctx, nil, err)
				})
				if err != nil {
					return fmt.Errorf("look for marks of %q: %w", name, err)
				}
				for _, key := range found {
					id := layout.UnescapeColons.Replace(strings.TrimPrefix(key, prefix))
					to := []string{l.Shard(topic, id, "")}
					if l.Keyed {
						to = l.Names(topic)
					}
					if err := s.moveMark(ctx, name, id, to...); err != nil {
						return err
					}
				}
				if cursor == 0 {
					break
				}
			}
		}
	}
	return nil
}

var escapeGlob = strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, `\`, `\\`).Replace
