package shards

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

// Deliver delivers all outboxes of a topic whose timers move.
func (s *Store) Deliver(ctx context.Context, topic string) error {
	_, err := routed(ctx, s, topic, func(l sharding.Layout) ([]int, error) {
		if !l.Moves() {
			return nil, nil
		}
		return each(ctx, sharding.Names(topic, l.From), func(ctx context.Context, name string) (int, error) {
			return 0, s.deliverAll(ctx, topic, l, name)
		})
	})
	return err
}

// abandonedAfter is the age from which on a batch in an outbox was left behind by a process
// that has ended.
const abandonedAfter = 300 * time.Millisecond

// DeliverAbandoned delivers the batches that a process has left behind, and reports
// whether timers of the topic move. Nodes call it five times a second then.
func (s *Store) DeliverAbandoned(ctx context.Context, topic string) (moves bool, err error) {
	return routed(ctx, s, topic, func(l sharding.Layout) (bool, error) {
		if !l.Moves() {
			return l.Moving, nil // of a topic that was divided without timers: it settles soon
		}
		return true, s.deliverAbandoned(ctx, topic, l)
	})
}

func (s *Store) deliverAbandoned(ctx context.Context, topic string, l sharding.Layout) error {
	_, err := each(ctx, sharding.Names(topic, l.From), func(ctx context.Context, name string) (int, error) {
		batches, leaving, err := s.leftBehind(ctx, name)
		if err != nil || len(batches) == 0 && leaving == "" {
			return 0, err
		}
		now, err := s.now(ctx)
		if err != nil {
			return 0, err
		}
		for token, text := range batches {
			if !abandoned(token, "-", now) {
				continue
			}
			if err := s.deliver(ctx, topic, l, name, token, text); err != nil {
				return 0, err
			}
		}
		if leaving == "" || !abandoned(leaving, " ", now) {
			return 0, nil
		}
		return 0, s.toShards(topic, l).finishKey(ctx, name)
	})
	return err
}

// leftBehind returns what a process may have left behind in a physical topic: batches by
// their tokens, and the note of a key that moves in several steps.
func (s *Store) leftBehind(ctx context.Context, name string) (batches map[string]string, leaving string, err error) {
	if batches, err = s.outbox(ctx, name); err == nil {
		leaving, err = s.partlyLeft(ctx, s.timers.Keys().Of(name).Taken())
	}
	return batches, leaving, err
}

// partlyLeft returns the note of the key that moves in several steps, of an index of an
// outbox; empty: none does.
func (s *Store) partlyLeft(ctx context.Context, index string) (leaving string, err error) {
	err = s.timers.Again(ctx, func() error {
		leaving, err = s.timers.RDB.HGet(ctx, index, leavingField).Result()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		return scripts.Wrap(ctx, []string{index}, err)
	})
	if err != nil {
		return "", fmt.Errorf("look for a key that moves in several steps, in %q: %w", index, err)
	}
	return leaving, nil
}

// leavingField is the field of the index of an outbox with the key that moves in several
// steps: the µs of the last of them, a space, and the key.
const leavingField = "p"

// abandoned reports whether a text that begins with an instant in µs is old.
func abandoned(text, end string, now time.Time) bool {
	micros, _, _ := strings.Cut(text, end)
	at, _ := strconv.ParseInt(micros, 10, 64)
	return now.Sub(time.UnixMicro(at)) >= abandonedAfter
}

// finishKey moves what is left of a key that moves in several steps, unless a handler or
// a call has one of its timers.
func (t *transport) finishKey(ctx context.Context, from string) error {
	for {
		took, _, err := t.takePage(ctx, from, 0, "0")
		if took.token == "" || err != nil {
			return err
		}
		if err := t.deliver(ctx, from, took.token, took.batch); err != nil {
			return err
		}
	}
}
