package main

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/internal/meter"
)

const (
	singleCalls     = 20_000
	concurrentCalls = 60_000
	concurrency     = 50
	batchTimers     = 100_000
	batchSize       = 500
	bulkSize        = 10_000
)

// scheduler is a client and the topic on which it schedules.
type scheduler struct {
	rdb    *redis.Client
	client *wakebell.Client
	topic  wakebell.Topic[[]byte]
	body   []byte

	options []wakebell.ScheduleOption // of each timer, beside its id and instant
}

func newScheduler(w *world, options ...wakebell.ScheduleOption) (*scheduler, error) {
	rdb := w.client(0)
	conn, err := connection.New(rdb, connection.Config{Logger: quiet()})
	if err != nil {
		return nil, err
	}
	client, err := wakebell.NewClient(conn)
	return &scheduler{rdb, client, wakebell.NewTopic[[]byte]("schedule"), bytes.Repeat([]byte("x"), 100), append(options, wakebell.In(time.Hour))}, err
}

func (s *scheduler) one(ctx context.Context, i int) error {
	_, err := s.topic.Schedule(ctx, s.client, s.body, s.with(i)...)
	return err
}

// with returns the options of the timer with a number.
func (s *scheduler) with(i int) []wakebell.ScheduleOption {
	return append(slices.Clip(s.options), wakebell.ID(timerID(i)))
}

// scheduleCalls measures concurrent callers that schedule one timer at a time.
func scheduleCalls(n, callers int, options ...wakebell.ScheduleOption) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (sample, error) {
		s, err := newScheduler(w, options...)
		if err != nil {
			return nil, err
		}
		defer func() { _ = s.rdb.Close() }()
		if err := s.one(ctx, -1); err != nil {
			return nil, err
		}
		n := w.many(n)
		return w.measure(ctx, n, func() error {
			return calls(n, callers, func(i int) error { return s.one(ctx, i) })
		})
	}
}

// recorder is a hook that records the arguments of the last EVALSHA.
type recorder struct {
	meter.Calls // for the other hooks
	mu          sync.Mutex
	args        []any
}

func (r *recorder) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			r.mu.Lock()
			r.args = slices.Clone(cmd.Args())
			r.mu.Unlock()
		}
		return next(ctx, cmd)
	}
}

// bareEvalsha sends the same command as a schedule call of Wakebell without the code
// around it: one caller, one timer at a time.
func bareEvalsha(ctx context.Context, w *world) (sample, error) {
	s, err := newScheduler(w)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.rdb.Close() }()
	recorded := &recorder{}
	s.rdb.AddHook(recorded)
	if err := errors.Join(s.one(ctx, -2), s.one(ctx, -1)); err != nil { // the script is loaded by the first
		return nil, err
	}
	rdb := w.client(1)
	defer func() { _ = rdb.Close() }()
	n, known := w.many(singleCalls), timerID(-1)
	at := slices.IndexFunc(recorded.args, func(arg any) bool { return asString(arg) == known })
	if at < 0 {
		return nil, errors.New("the id is not among the arguments of the schedule script")
	}
	return w.measure(ctx, n, func() error {
		for i := range n {
			args := slices.Clone(recorded.args)
			args[at] = timerID(i)
			if err := rdb.Do(ctx, args...).Err(); err != nil {
				return err
			}
		}
		return nil
	})
}

func asString(arg any) string {
	switch v := arg.(type) {
	case string:
		return v
	case *string:
		return *v
	case []byte:
		return string(v)
	default:
		return ""
	}
}

// enqueueCalls measures the same with asynq.
func enqueueCalls(ctx context.Context, w *world) (sample, error) {
	rdb := w.client(0)
	defer func() { _ = rdb.Close() }()
	n := w.many(concurrentCalls)
	return w.measure(ctx, n, func() error { return enqueue(ctx, rdb, n, concurrency) })
}

// scheduleBatches schedules in batches.
func scheduleBatches(size int, options ...wakebell.ScheduleOption) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (sample, error) {
		s, err := newScheduler(w, options...)
		if err != nil {
			return nil, err
		}
		defer func() { _ = s.rdb.Close() }()
		return w.batches(ctx, size, func(first int) error {
			drafts := make([]wakebell.Draft, size)
			for i := range drafts {
				drafts[i] = s.topic.Draft(s.body, s.with(first+i)...)
			}
			_, err := s.client.Schedule(ctx, drafts...)
			return err
		})
	}
}

// variadicMulti writes the same bytes with the minimum of two commands, in one
// transaction per batch, without a check of existing timers and without hints.
func variadicMulti(size int) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (sample, error) {
		rdb := w.client(0)
		defer func() { _ = rdb.Close() }()
		body := bytes.Repeat([]byte("x"), 100)
		return w.batches(ctx, size, func(first int) error {
			scores, fields := make([]redis.Z, size), make([]any, 0, 2*size)
			due := float64(time.Now().Add(time.Hour).UnixMicro()) / 1e6
			for i := range scores {
				id := timerID(first + i)
				payload, err := envelope.Encode(envelope.Envelope{CorrelationID: id, Body: body})
				if err != nil {
					return err
				}
				scores[i] = redis.Z{Score: due, Member: id}
				fields = append(fields, id, payload)
			}
			_, err := rdb.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
				pipe.ZAdd(ctx, "timers_timeline:multi", scores...)
				pipe.HSet(ctx, "timers_payloads:multi", fields...)
				return nil
			})
			return err
		})
	}
}

func (w *world) batches(ctx context.Context, size int, put func(first int) error) (sample, error) {
	n := w.many(batchTimers/size) * size
	return w.measure(ctx, n, func() error {
		for first := 0; first < n; first += size {
			if err := put(first); err != nil {
				return err
			}
		}
		return nil
	})
}
