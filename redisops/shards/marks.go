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

// moveMark moves the mark of an id, if there is one, to those physical topics where the mark
// of a timer, with or without a key, belongs. A mark that is there stays as it is.
func (s *Store) moveMark(ctx context.Context, from, id string, to func(keyed bool) []string) error {
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
		for _, name := range to(strings.HasSuffix(text, " k")) {
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
// was handled is not known, so its mark goes to all shards if it had one, or timers have.
func (s *Store) moveMarks(ctx context.Context, topic string, l sharding.Layout) error {
	return s.eachMark(ctx, sharding.Names(topic, l.From), func(name, id string) error {
		return s.moveMark(ctx, name, id, func(keyed bool) []string { return markedIn(l, topic, id, keyed) })
	})
}

// markedIn returns the physical topics in which the mark of an id belongs, whose timer had a
// key or none.
func markedIn(l sharding.Layout, topic, id string, keyed bool) []string {
	if l.Keyed || keyed {
		return l.Names(topic)
	}
	return []string{l.Shard(topic, id, "")}
}

// eachMark calls do with the ids that have a mark in one of some physical topics. It may
// do so twice for an id. It scans all keys of Redis once.
func (s *Store) eachMark(ctx context.Context, names []string, do func(name, id string) error) error {
	of := map[string]string{} // physical topics by what precedes the ids of their marks
	pattern := s.timers.Keys().Once + ":"
	for _, name := range names {
		of[s.timers.Keys().Of(name).Mark("")] = name
		if len(names) == 1 {
			pattern = s.timers.Keys().Of(name).Mark("")
		}
	}
	servers, err := s.timers.Nodes(ctx)
	if err != nil {
		return fmt.Errorf("look for marks of %q: %w", names[0], scripts.Wrap(ctx, nil, err))
	}
	for _, server := range servers {
		for cursor, first := uint64(0), true; first || cursor != 0; first = false {
			var found []string
			err := s.timers.Again(ctx, func() (err error) {
				found, cursor, err = server.ScanType(ctx, cursor, escapeGlob(pattern)+"*", layout.ScanPage, "string").Result()
				return scripts.Wrap(ctx, nil, err)
			})
			if err != nil {
				return fmt.Errorf("look for marks of %q: %w", names[0], err)
			}
			for _, key := range found {
				end := strings.LastIndexByte(key, ':') + 1 // ids have no colons there
				name, ours := of[key[:end]]
				if !ours {
					continue
				}
				if err := do(name, layout.UnescapeColons.Replace(key[end:])); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

var escapeGlob = strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, `\`, `\\`).Replace
