package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

const bytesPer = "bytes_per_timer"

// pendingBytes measures the memory of Redis per pending timer.
func pendingBytes(n int) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (sample, error) {
		n := w.many(n)
		before, err := usedByRedis(ctx, w)
		if err != nil {
			return nil, err
		}
		if err := loadPending(ctx, w, "pending", 0, n); err != nil {
			return nil, err
		}
		// Redis shrinks the buffers of busy connections after a few seconds.
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

// loadPending schedules n timers for later, with texts of 100 bytes and ids from a number on.
func loadPending(ctx context.Context, w *world, topic string, from, n int) error {
	name, body := wakebell.NewTopic[string](topic), strings.Repeat("x", 100)
	return loadAll(ctx, w.rdb, loaders, n, func(i int) wakebell.Draft {
		return name.Draft(body, wakebell.ID(timerID(from+i)), wakebell.In(24*time.Hour+time.Duration(i)*time.Millisecond))
	})
}

const (
	depthRounds = 300
	depthBatch  = 1000

	wallUS = "wall_us" // elapsed per timer, µs
	// The same with a thousand pending timers, and the ratios.
	fewRedisUS, fewWallUS = "few_redis_us", "few_wall_us"
	deepRedis, deepWall   = "deep_redis", "deep_wall"
)

// depth measures the cost of a timer while n others are pending, against another Redis
// with a thousand pending timers. Batches alternate between both, so that both have the
// same load on the machine. They are handled by the loop of floor, and only its time
// counts.
func depth(pending int) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (s sample, err error) {
		other, err := newWorld(w.scale, w.log)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, other.close()) }()
		many, err := newBacklog(ctx, w, w.many(pending))
		if err != nil {
			return nil, err
		}
		defer many.close()
		few, err := newBacklog(ctx, other, depthBatch)
		if err != nil {
			return nil, err
		}
		defer few.close()
		for round := range w.many(depthRounds) {
			both := []*backlog{many, few}
			for i := range both {
				if err := both[(i+round)%2].handle(ctx, round); err != nil { // alternate the order
					return nil, err
				}
			}
		}
		return sample{
			redisUS: median(many.seen[redisUS]), clientUS: median(many.seen[clientUS]), wallUS: median(many.seen[wallUS]),
			fewRedisUS: median(few.seen[redisUS]), fewWallUS: median(few.seen[wallUS]),
			deepRedis: medianRatio(many.seen[redisUS], few.seen[redisUS]),
			deepWall:  medianRatio(many.seen[wallUS], few.seen[wallUS]),
		}, nil
	}
}

// backlog is a Redis with pending timers.
type backlog struct {
	*world
	store *timers.Timers
	step  func() (int, error)
	seen  map[string][]float64
	close func()
}

func newBacklog(ctx context.Context, w *world, pending int) (*backlog, error) {
	if err := loadPending(ctx, w, "depth", 0, pending); err != nil {
		return nil, err
	}
	if err := settleRehash(ctx, w, "depth", 0, pending); err != nil {
		return nil, err
	}
	rdb := w.client(1)
	store, err := timers.New(rdb, wakebelltype.Keys{})
	if err != nil {
		return nil, err
	}
	return &backlog{
		world: w, store: store, step: exchanges(ctx, store.Source("depth", timers.SourceOptions{}), 0, deliverBatch),
		seen: map[string][]float64{}, close: func() { _ = rdb.Close() },
	}, nil
}

// handle makes a batch due and handles it.
func (p *backlog) handle(ctx context.Context, round int) error {
	if err := loadDue(ctx, p.store, "depth", round); err != nil {
		return err
	}
	s, err := p.measure(ctx, depthBatch, func() error {
		for settled := 0; settled < depthBatch; {
			n, err := p.step()
			if err != nil {
				return err
			}
			settled += n
		}
		return nil
	})
	if err != nil {
		return err
	}
	s[wallUS] = 1e6 / s[rate]
	for _, what := range []string{redisUS, clientUS, wallUS} {
		p.seen[what] = append(p.seen[what], s[what])
	}
	return nil
}

// loadDue makes a batch of timers due.
func loadDue(ctx context.Context, store *timers.Timers, topic string, round int) error {
	entries, payload := make([]timers.Entry, depthBatch), bytes.Repeat([]byte("x"), 185)
	for i := range entries {
		entries[i] = timers.Entry{ID: "due-" + timerID(round*depthBatch + i)[4:], Payload: payload}
	}
	_, err := store.Schedule(ctx, topic, entries...)
	return err
}

// settleRehash reads every timer, because reads complete the incremental rehashing of
// Redis's tables.
func settleRehash(ctx context.Context, w *world, topic string, from, n int) error {
	const step = 1000
	for range 2 {
		err := calls((n+step-1)/step, 2, func(i int) error {
			var ids []string
			for k := (i - 1) * step; k < min(i*step, n); k++ {
				ids = append(ids, timerID(from+k))
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
