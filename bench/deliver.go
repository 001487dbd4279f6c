package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/opened"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	deliverTimers = 200_000 // of Wakebell in a run
	deliverBatch  = 100     // leases of an exchange, as a poller claims at most
	deliverLoops  = 2       // exchanges at a time, as a poller has at most
	leaseTTL      = 30 * time.Second

	loaders = 4 // callers that schedule what is due later
)

// loadTimers schedules n timers that are due at once, with bodies of a given size. All
// contenders have ids of the same length.
func loadTimers(ctx context.Context, w *world, topic string, n, bodyBytes int, options ...wakebell.ScheduleOption) error {
	name, body := wakebell.NewTopic[[]byte](topic), bytes.Repeat([]byte("x"), bodyBytes)
	return loadAll(ctx, w.rdb, 1, n, func(i int) wakebell.Draft {
		return name.Draft(body, append(options, wakebell.ID(timerID(i)))...)
	})
}

// loadAll schedules n timers, batchSize in a call and from several callers.
func loadAll(ctx context.Context, rdb redis.UniversalClient, callers, n int, draft func(i int) wakebell.Draft) error {
	conn, err := connection.New(rdb, connection.Config{Logger: quiet()})
	if err != nil {
		return err
	}
	client, err := wakebell.NewClient(conn)
	if err != nil {
		return err
	}
	return calls((n+batchSize-1)/batchSize, callers, func(call int) error {
		first := (call - 1) * batchSize
		drafts := make([]wakebell.Draft, 0, batchSize)
		for i := first; i < min(first+batchSize, n); i++ {
			drafts = append(drafts, draft(i))
		}
		if _, err := client.Schedule(ctx, drafts...); err != nil {
			return fmt.Errorf("load: %w", err)
		}
		return nil
	})
}

// timerID returns an id of 22 characters, like those that Wakebell generates. As there,
// consecutive ids are not ordered, which is the harder case for indexes.
func timerID(i int) string {
	mixed := uint64(i+1) * 0x9e3779b97f4a7c15
	return fmt.Sprintf("%010x%012d", mixed>>24, i)
}

// floor handles timers with a loop over the exchange of package redisops: the work of a
// poller without actors, handlers, contexts and envelopes.
func floor(bodyBytes int) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (sample, error) {
		n := w.many(deliverTimers)
		if err := loadTimers(ctx, w, "floor", n, bodyBytes); err != nil {
			return nil, err
		}
		rdb := w.client(deliverLoops)
		defer func() { _ = rdb.Close() }()
		store, err := timers.New(rdb, wakebelltype.Keys{})
		if err != nil {
			return nil, err
		}
		return w.measure(ctx, n, func() error {
			return loops(deliverLoops, n, func(loop int) func() (int, error) {
				return exchanges(ctx, store.Source("floor", timers.SourceOptions{}), loop, deliverBatch)
			})
		})
	}
}

// exchanges returns a step that settles the claims of the previous step, and claims.
func exchanges(ctx context.Context, source *timers.TimerSource, loop, batch int) func() (int, error) {
	request := &exchange.Request{Incarnation: "bench", Stream: loop, Want: batch, LeaseTTL: leaseTTL}
	return func() (int, error) {
		request.Sequence++
		settled := len(request.Settle)
		reply, err := source.Exchange(ctx, request)
		if err != nil {
			return 0, err
		}
		if len(reply.Refused) > 0 {
			return 0, errors.New("an ack was refused")
		}
		request.Settle = request.Settle[:0]
		for _, l := range reply.Leases {
			request.Settle = append(request.Settle, exchange.Settlement{
				Held: exchange.Held{ID: l.ID, Token: l.Token}, Verdict: exchange.Ack,
			})
		}
		return settled, nil
	}
}

var (
	//go:embed bare.lua
	bareText string
	//go:embed classes.lua
	classesText string
)

// bare handles timers with a loop over a script without attempts, replay, fence and
// clock.
func bare(text string) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (sample, error) { return runBare(ctx, w, text) }
}

func runBare(ctx context.Context, w *world, text string) (sample, error) {
	n := w.many(deliverTimers)
	if err := loadTimers(ctx, w, "bare", n, 100); err != nil {
		return nil, err
	}
	rdb := w.client(deliverLoops)
	defer func() { _ = rdb.Close() }()
	script := redis.NewScript(text)
	if err := script.Load(ctx, rdb).Err(); err != nil {
		return nil, err
	}
	if text == classesText {
		if err := classify(ctx, w, rdb, n); err != nil {
			return nil, err
		}
	}
	keys := []string{"timers_timeline:bare", "timers_payloads:bare", "due-0", "due-1", "classes"}
	return w.measure(ctx, n, func() error {
		return loops(deliverLoops, n, func(int) func() (int, error) {
			var done []any
			return func() (int, error) {
				now := time.Now()
				args := append([]any{now.Unix(), now.Add(leaseTTL).Unix(), deliverBatch}, done...)
				reply, err := script.EvalSha(ctx, rdb, keys, args...).StringSlice()
				settled := len(done)
				done = done[:0]
				for i := range len(reply) / 2 {
					done = append(done, reply[i])
				}
				return settled, err
			}
		})
	})
}

// classify gives every tenth timer a class of its own.
func classify(ctx context.Context, w *world, rdb *redis.Client, n int) error {
	ids := make([]any, 0, 2000)
	for i := range n {
		ids = append(ids, timerID(i), i%10/9)
		if len(ids) == cap(ids) || i == n-1 {
			if err := rdb.HSet(ctx, "classes", ids...).Err(); err != nil {
				return err
			}
			ids = ids[:0]
		}
	}
	return nil
}

// loops runs a step in several loops until they have settled n timers together.
func loops(count, n int, loop func(int) func() (int, error)) error {
	var left atomic.Int64
	left.Store(int64(n))
	errs := make([]error, count)
	var wait sync.WaitGroup
	for i := range count {
		step := loop(i)
		wait.Go(func() {
			for left.Load() > 0 && errs[i] == nil {
				var settled int
				settled, errs[i] = step()
				left.Add(-int64(settled))
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// node handles timers with Wakebell.
func node(maxConcurrent, bodyBytes int) func(context.Context, *world) (sample, error) {
	return nodeWith(maxConcurrent, bodyBytes, used{})
}

// nodeInline is node with all payloads in the answers of exchanges.
func nodeInline(maxConcurrent, bodyBytes int) func(context.Context, *world) (sample, error) {
	return nodeWith(maxConcurrent, bodyBytes, used{switches: opened.Switches{NoPayloadsApart: true}})
}

func nodeWith(maxConcurrent, bodyBytes int, use used) func(context.Context, *world) (sample, error) {
	return nodeHandling(bodyBytes, use, single(maxConcurrent, nil))
}

// work is what a handler does with the bodies of a call; nil: nothing.
type work func(ctx context.Context, rdb redis.UniversalClient, n int) error

// increment makes one round trip to Redis for each call, as a handler with a database
// would.
func increment(ctx context.Context, rdb redis.UniversalClient, n int) error {
	return rdb.IncrBy(ctx, "handled", int64(n)).Err()
}

// compute takes 5 µs of CPU time for each call, as a log line and a few allocations would.
func compute(context.Context, redis.UniversalClient, int) error {
	began := time.Now()
	for time.Since(began) < 5*time.Microsecond {
	}
	return nil
}

// makeHandler returns a handler of the topic "node", which reports how many timers each
// of its calls has handled.
type makeHandler func(rdb redis.UniversalClient, handled func(n int)) wakebell.Handler

// single handles timers one by one.
func single(maxConcurrent int, do work, options ...wakebell.HandlerOption) makeHandler {
	return func(rdb redis.UniversalClient, handled func(n int)) wakebell.Handler {
		return wakebell.Handle(wakebell.NewTopic[[]byte]("node"), func(ctx context.Context, _ wakebell.Timer[[]byte]) error {
			defer handled(1)
			if do != nil {
				return do(ctx, rdb, 1)
			}
			return nil
		}, append(options, wakebell.MaxConcurrent(maxConcurrent))...)
	}
}

// inBatches handles up to size timers in a call, and has so many calls at once.
func inBatches(size, calls int, do work) makeHandler {
	return func(rdb redis.UniversalClient, handled func(n int)) wakebell.Handler {
		return wakebell.HandleBatch(wakebell.NewTopic[[]byte]("node"), func(ctx context.Context, batch []wakebell.Timer[[]byte]) error {
			defer handled(len(batch))
			if do != nil {
				return do(ctx, rdb, len(batch))
			}
			return nil
		}, wakebell.BatchSize(size), wakebell.MaxConcurrent(calls))
	}
}

func nodeHandling(bodyBytes int, use used, handler makeHandler) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (sample, error) {
		return nodeHandlingMany(ctx, w, w.many(deliverTimers), bodyBytes, use, handler)
	}
}

func nodeHandlingMany(ctx context.Context, w *world, n, bodyBytes int, use used, handler makeHandler, options ...wakebell.ScheduleOption) (sample, error) {
	if err := loadTimers(ctx, w, "node", n, bodyBytes, options...); err != nil {
		return nil, err
	}
	rdb := w.client(0)
	defer func() { _ = rdb.Close() }()
	var left atomic.Int64
	left.Store(int64(n))
	handle := handler(rdb, func(n int) { left.Add(-int64(n)) })
	sys, err := use.system(rdb, handle)
	if err != nil {
		return nil, err
	}
	s, err := w.measure(ctx, n, func() error {
		if err := sys.Start(ctx); err != nil {
			return err
		}
		return until(ctx, func() bool {
			return left.Load() <= 0 && sys.Counters()["node"].Acked >= int64(n)
		})
	})
	return s, errors.Join(err, sys.Stop())
}

// measure returns the figures of n pieces of work.
func (w *world) measure(ctx context.Context, n int, work func() error) (sample, error) {
	before, err := readMeters(ctx, w.rdb)
	if err != nil {
		return nil, err
	}
	if w.profile != nil {
		if err := pprof.StartCPUProfile(w.profile); err != nil {
			return nil, err
		}
		w.profile = nil
		defer pprof.StopCPUProfile()
	}
	if err := work(); err != nil {
		return nil, err
	}
	after, err := readMeters(ctx, w.rdb)
	if err != nil {
		return nil, err
	}
	return between(before, after, n), nil
}

// until waits for a condition, which it checks every millisecond.
func until(ctx context.Context, done func() bool) error {
	return untilEvery(ctx, time.Millisecond, done)
}

func untilEvery(ctx context.Context, pause time.Duration, done func() bool) error {
	look := time.NewTicker(pause)
	defer look.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
	}
	return nil
}
