package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/redisops"
)

const bytesPer = "bytes_per_timer"

// pendingBytes is the memory of Redis for each of n timers that wait.
func pendingBytes(n int) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (sample, error) {
		n := w.many(n)
		before, err := usedByRedis(ctx, w)
		if err != nil {
			return nil, err
		}
		if err := loadPending(ctx, w, "pending", n); err != nil {
			return nil, err
		}
		// Redis takes the buffers of busy connections back after a few seconds.
		if err := wait(ctx, 5*time.Second); err != nil {
			return nil, err
		}
		after, err := usedByRedis(ctx, w)
		return sample{bytesPer: (after - before) / float64(n)}, err
	}
}

func usedByRedis(ctx context.Context, w *world) (float64, error) {
	info, err := w.rdb.Info(ctx, "memory").Result()
	if err != nil {
		return 0, fmt.Errorf("read the memory of redis: %w", err)
	}
	return parseInfo(info)["used_memory"], nil
}

// loadPending schedules n timers for later, with texts of 100 bytes.
func loadPending(ctx context.Context, w *world, topic string, n int) error {
	client, err := wakebell.NewClient(w.rdb, wakebell.ClientConfig{Logger: quiet()})
	if err != nil {
		return err
	}
	name, body := wakebell.NewTopic[string](topic), strings.Repeat("x", 100)
	const callers = 4
	return calls((n+batchSize-1)/batchSize, callers, func(i int) error {
		first := (i - 1) * batchSize
		drafts := make([]wakebell.Draft, 0, batchSize)
		for k := first; k < min(first+batchSize, n); k++ {
			drafts = append(drafts, name.Draft(body, wakebell.ID(timerID(k)), wakebell.In(24*time.Hour+time.Duration(k)*time.Millisecond)))
		}
		_, err := client.Schedule(ctx, drafts...)
		return err
	})
}

const (
	depthRounds = 300
	depthBatch  = 1000
	wallUS      = "wall_us" // elapsed per timer, µs
)

// depth is what a timer costs while n others wait: batches become due and are
// handled by the floor's loop, whose time alone counts.
func depth(pending int) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (sample, error) {
		if pending > depthBatch {
			pending = w.many(pending)
		}
		if err := loadPending(ctx, w, "depth", pending); err != nil {
			return nil, err
		}
		if err := settleRehash(ctx, w, "depth", pending); err != nil {
			return nil, err
		}
		rdb := w.client(1)
		defer func() { _ = rdb.Close() }()
		store, err := redisops.NewTimers(rdb, redisops.Keys{})
		if err != nil {
			return nil, err
		}
		step := exchanges(ctx, store.Source("depth", redisops.SourceOptions{}), 0, deliverBatch)
		seen := map[string][]float64{}
		for round := range w.many(depthRounds) {
			if err := loadDue(ctx, store, "depth", round); err != nil {
				return nil, err
			}
			s, err := w.measure(ctx, depthBatch, func() error {
				for settled := 0; settled < depthBatch; {
					n, err := step()
					if err != nil {
						return err
					}
					settled += n
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
			seen[redisUS] = append(seen[redisUS], s[redisUS])
			seen[clientUS] = append(seen[clientUS], s[clientUS])
			seen[wallUS] = append(seen[wallUS], 1e6/s[rate])
		}
		typical := sample{} // what disturbs the machine for a moment counts for a moment
		for what, values := range seen {
			typical[what] = median(values)
		}
		return typical, nil
	}
}

// loadDue makes a batch of timers due.
func loadDue(ctx context.Context, store *redisops.Timers, topic string, round int) error {
	entries, payload := make([]redisops.Entry, depthBatch), bytes.Repeat([]byte("x"), 185)
	for i := range entries {
		entries[i] = redisops.Entry{ID: "due-" + timerID(round*depthBatch + i)[4:], Payload: payload}
	}
	_, err := store.Schedule(ctx, topic, entries...)
	return err
}

// settleRehash looks at every timer, for it is looks that move a table of Redis
// on to its next size.
func settleRehash(ctx context.Context, w *world, topic string, n int) error {
	const step = 1000
	for range 2 {
		err := calls((n+step-1)/step, 2, func(i int) error {
			var ids []string
			for k := (i - 1) * step; k < min(i*step, n); k++ {
				ids = append(ids, timerID(k))
			}
			pipe := w.rdb.Pipeline()
			pipe.ZMScore(ctx, "timers_timeline:"+topic, ids...)
			pipe.HMGet(ctx, "timers_payloads:"+topic, ids...)
			_, err := pipe.Exec(ctx)
			return err
		})
		if err != nil {
			return errors.Join(errors.New("settle the tables of redis"), err)
		}
	}
	return nil
}
