package shards

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

// RunWasPut reports whether a run of a recurring schedule, or a later one, was put on the
// topic where its timer was before the last change of the number of shards.
func (s *Store) RunWasPut(ctx context.Context, topic, name, id, incarnation string, run int64) (bool, error) {
	l, err := s.layout(ctx, topic)
	if err != nil || l.From == 0 || l.From == l.Count() {
		return false, err
	}
	key, noted := s.timers.Keys().Of(l.Old(topic, id, "")).Runs, ""
	err = s.timers.Again(ctx, func() (err error) {
		noted, err = s.timers.RDB.HGet(ctx, key, name).Result()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		return scripts.Wrap(ctx, []string{key}, err)
	})
	if err != nil {
		return false, fmt.Errorf("look for runs of %q: %w", name, err)
	}
	of, number, _ := strings.Cut(noted, " ")
	last, err := strconv.ParseInt(number, 10, 64)
	return err == nil && of == incarnation && last >= run, nil
}

// moveRuns moves the notes of the runs that were put on a topic to all of its shards,
// because the shard of a run depends on the id of its timer. It may be repeated.
func (s *Store) moveRuns(ctx context.Context, topic string, l sharding.Layout) error {
	for _, from := range sharding.Names(topic, l.From) {
		noted, err := s.notedRuns(ctx, from)
		if err == nil && len(noted) > 0 {
			if err = s.noteRuns(ctx, l.Names(topic), noted); err == nil {
				key := s.timers.Keys().Of(from).Runs
				err = s.timers.Again(ctx, func() error {
					return scripts.Wrap(ctx, []string{key}, s.timers.RDB.Unlink(ctx, key).Err())
				})
			}
		}
		if err != nil {
			return fmt.Errorf("move the runs of recurring schedules of %q: %w", from, err)
		}
	}
	return nil
}

// notedRuns returns the notes of a physical topic, as arguments of lua/arrive_runs.lua.
func (s *Store) notedRuns(ctx context.Context, name string) (args []any, err error) {
	key := s.timers.Keys().Of(name).Runs
	err = s.timers.Again(ctx, func() error {
		noted, err := s.timers.RDB.HGetAll(ctx, key).Result()
		args = nil
		for name, run := range noted {
			args = append(args, name, run)
		}
		return scripts.Wrap(ctx, []string{key}, err)
	})
	return args, err
}

// noteRuns adds notes to physical topics.
func (s *Store) noteRuns(ctx context.Context, names []string, noted []any) error {
	_, err := each(ctx, names, func(ctx context.Context, name string) (string, error) {
		return s.timers.RunText(ctx, arriveRunsScript, []string{s.timers.Keys().Of(name).Runs}, noted...)
	})
	return err
}
