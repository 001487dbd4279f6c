package shards

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
		found, err := s.copyRuns(ctx, from, s, l.Names(topic))
		if err == nil && found {
			key := s.timers.Keys().Of(from).Runs
			err = s.timers.Again(ctx, func() error {
				return scripts.Wrap(ctx, []string{key}, s.timers.RDB.Unlink(ctx, key).Err())
			})
		}
		if err != nil {
			return fmt.Errorf("move the runs of recurring schedules of %q: %w", from, err)
		}
	}
	return nil
}

// runsPage is about how many notes of runs a call reads and writes.
const runsPage = 500

// copyRuns adds the notes of a physical topic to those of others, and reports whether it has
// any.
func (s *Store) copyRuns(ctx context.Context, from string, to *Store, names []string) (found bool, err error) {
	for cursor := uint64(0); ; {
		var noted []any
		if noted, cursor, err = s.notedRuns(ctx, from, cursor); err != nil {
			return found, err
		}
		for part := range slices.Chunk(noted, 2*runsPage) { // a small hash comes whole
			found = true
			_, err := each(ctx, names, func(ctx context.Context, name string) (string, error) {
				return to.timers.RunText(ctx, arriveRunsScript, []string{to.timers.Keys().Of(name).Runs}, part...)
			})
			if err != nil {
				return found, err
			}
		}
		if cursor == 0 {
			return found, nil
		}
	}
}

// notedRuns returns a page of the notes of a physical topic, as arguments of
// lua/arrive_runs.lua, and the cursor of the next one.
func (s *Store) notedRuns(ctx context.Context, name string, cursor uint64) (args []any, next uint64, err error) {
	key := s.timers.Keys().Of(name).Runs
	err = s.timers.Again(ctx, func() error {
		var noted []string
		noted, next, err = s.timers.RDB.HScan(ctx, key, cursor, "", runsPage).Result()
		args = make([]any, len(noted))
		for i, word := range noted {
			args[i] = word
		}
		return scripts.Wrap(ctx, []string{key}, err)
	})
	return args, next, err
}
