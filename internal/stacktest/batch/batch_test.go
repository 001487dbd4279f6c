package batch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// batches records the ids of each call of a batch handler.
type batches struct {
	mu    sync.Mutex
	calls [][]string
}

func (b *batches) add(timers []wakebell.Timer[string]) (ids []string) {
	for _, t := range timers {
		ids = append(ids, t.ID)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, ids)
	return ids
}

func (b *batches) all() [][]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.calls)
}

// ids returns the ids that were delivered, in the order of the calls.
func (b *batches) ids() []string { return slices.Concat(b.all()...) }

func TestBatchHasWhatIsDue(t *testing.T) {
	t.Parallel()
	for name, middleware := range map[string][]wakebell.BatchMiddleware{
		"plain":      nil,
		"middleware": {func(next wakebell.BatchFunc) wakebell.BatchFunc { return next }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			topic := wakebell.NewTopic[string](redistest.Name(t))
			var got batches
			rdb := redistest.Shared(t)
			stacktest.ScheduleAll(t, stacktest.Client(t, rdb, connection.Config{}), topic, stacktest.Numbered(250))
			sys := stacktest.Serve(t, rdb, wakebell.HandleBatch(topic, func(_ context.Context, timers []wakebell.Timer[string]) error {
				for _, timer := range timers {
					if timer.Body != "body of "+timer.ID || timer.Attempt != 1 || timer.Topic != topic.Name() {
						return fmt.Errorf("wrong timer: %v", timer)
					}
				}
				got.add(timers)
				return nil
			}, wakebell.BatchSize(100), wakebell.MaxConcurrent(1), wakebell.WithBatch(middleware...)))
			stacktest.AwaitCounters(t, sys, topic.Name(), func(c wakebelltype.Counters) bool { return c.Acked == 250 })
			ids := got.ids()
			slices.Sort(ids)
			require.Equal(t, stacktest.Numbered(250), ids)
			for _, call := range got.all() {
				require.LessOrEqual(t, len(call), 100)
			}
			require.Len(t, got.all()[0], 100, "a claim becomes one batch")
		})
	}
}

// A batch has one timer of a key at most where one may run at a time, also if a node has leased a
// run of the key.
func TestBatchHasOneTimerOfEachRun(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string](redistest.Name(t))
	rdb := redistest.Shared(t)
	var drafts []wakebell.Draft
	for i := range 20 {
		for _, key := range []string{"a", "b", "c"} {
			drafts = append(drafts, topic.Draft("x", wakebell.Key(key), wakebell.ID(fmt.Sprintf("%s%02d", key, 99-i))))
		}
	}
	_, err := stacktest.Client(t, rdb, connection.Config{}).Schedule(t.Context(), drafts...)
	require.NoError(t, err)
	var got batches
	sys := stacktest.Serve(t, rdb, wakebell.HandleBatch(topic, func(_ context.Context, timers []wakebell.Timer[string]) error {
		got.add(timers)
		return nil
	}, wakebell.BatchSize(10), wakebell.MaxConcurrent(2), wakebell.PerKey(1), wakebell.KeyRun(5)))
	stacktest.AwaitCounters(t, sys, topic.Name(), func(c wakebelltype.Counters) bool { return c.Acked == 60 })
	last := map[byte]string{}
	for _, call := range got.all() {
		keys := map[byte]bool{}
		for _, id := range call {
			require.False(t, keys[id[0]], "%q", call)
			require.True(t, last[id[0]] == "" || id < last[id[0]], "%s after %s", id, last[id[0]])
			keys[id[0]], last[id[0]] = true, id
		}
	}
}

func TestVerdictsOfBatch(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string](redistest.Name(t))
	rdb := redistest.Shared(t)
	c := stacktest.Client(t, rdb, connection.Config{})
	stacktest.ScheduleAll(t, c, topic, []string{"acked", "nil", "rejected", "retried", "settled"})
	_, err := wakebell.NewTopic[int](topic.Name()).Schedule(t.Context(), c, 7, wakebell.ID("unreadable"))
	require.NoError(t, err)
	var got batches
	sys := stacktest.Serve(t, rdb, wakebell.HandleBatch(topic, func(ctx context.Context, timers []wakebell.Timer[string]) error {
		got.add(timers)
		verdicts := wakebell.BatchError{}
		for _, timer := range timers {
			switch {
			case timer.ID == "nil":
				verdicts[timer.ID] = nil
			case timer.ID == "rejected":
				verdicts[timer.ID] = wakebell.Reject(errors.New("no"))
			case timer.ID == "retried" && timer.Failures == 0:
				verdicts[timer.ID] = wakebell.RetryIn(0)
			case timer.ID == "settled":
				if err := timer.Settle(ctx, nil); err != nil {
					return err
				}
				verdicts[timer.ID] = errors.New("too late")
			}
		}
		return fmt.Errorf("wrapped: %w", verdicts)
	}))
	counters := stacktest.AwaitCounters(t, sys, topic.Name(), func(c wakebelltype.Counters) bool { return c.Acked == 4 && c.DeadLettered == 2 })
	require.Equal(t, int64(1), counters.Retried)
	require.Equal(t, int64(1), counters.Rejected)
	require.Zero(t, counters.Lost+counters.Superseded+counters.Crashed)
	require.Equal(t, []string{"acked", "nil", "rejected", "retried", "settled", "retried"}, got.ids())
	reasons := map[string]string{}
	for d, err := range sys.Client().DeadLetters(t.Context(), topic.Name(), wakebelltype.DeadFilter{}, wakebelltype.Page{}) {
		require.NoError(t, err)
		reasons[d.ID] = d.Reason
	}
	require.Equal(t, "no", reasons["rejected"])
	require.Contains(t, reasons["unreadable"], "cannot")
}

func TestBatchErrorWithUnknownID(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string]("t")
	wakebelltest.Run(t, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.HandleBatch(topic, func(_ context.Context, timers []wakebell.Timer[string]) error {
			return wakebell.BatchError{"a": nil, "mistyped": errors.New("failed")}
		}, wakebell.MaxAttempts(1)),
	}}, func(t *testing.T, w *wakebelltest.World) {
		stacktest.ScheduleAll(t, w.Client(), topic, []string{"a", "b"})
		w.Advance(0)
		require.Equal(t, wakebelltest.Acked, w.RequireDelivered("t", "a").Outcome)
		b := w.RequireDelivered("t", "b")
		require.Equal(t, wakebelltest.Dead, b.Outcome, "a failure that was meant for it must not be lost")
		require.ErrorContains(t, b.Err, `"mistyped", which is not in the batch`)
	})
}

func TestOneErrorFailsBatch(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string]("t")
	failed := errors.New("database is down")
	wakebelltest.Run(t, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.HandleBatch(topic, func(_ context.Context, timers []wakebell.Timer[string]) error {
			if timers[0].Attempt == 1 {
				return failed
			}
			return nil
		}),
	}}, func(t *testing.T, w *wakebelltest.World) {
		stacktest.ScheduleAll(t, w.Client(), topic, []string{"a", "b"})
		w.Advance(0)
		for _, id := range []string{"a", "b"} {
			require.Equal(t, wakebelltest.Retried, w.RequireDelivered("t", id).Outcome)
			require.Equal(t, failed, w.RequireDelivered("t", id).Err)
		}
		w.Advance(time.Minute)
		require.Equal(t, 2, w.RequireDelivered("t", "b").Attempt)
		require.Equal(t, wakebelltest.Acked, w.RequireDelivered("t", "b").Outcome)
	})
}

func TestTextOfBatchError(t *testing.T) {
	t.Parallel()
	require.EqualError(t, wakebell.BatchError{"b": errors.New("two"), "a": errors.New("one")},
		`2 timers of the batch failed: "a": one, "b": two`)
	require.EqualError(t, wakebell.BatchError{"a": nil, "b": nil, "c": nil, "d": nil},
		`4 timers of the batch failed: "a": <nil>, "b": <nil>, "c": <nil>, …`)
}

func TestMiddlewareAroundBatch(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string]("t")
	type tenant struct{}
	var got batches
	outer := func(next wakebell.BatchFunc) wakebell.BatchFunc {
		return func(ctx context.Context, timers []wakebell.Timer[[]byte]) wakebell.BatchError {
			verdicts := next(context.WithValue(ctx, tenant{}, "acme"), timers)
			for id, err := range verdicts {
				verdicts[id] = wakebell.Reject(fmt.Errorf("in middleware: %w", err))
			}
			return verdicts
		}
	}
	inner := func(next wakebell.BatchFunc) wakebell.BatchFunc {
		return func(ctx context.Context, timers []wakebell.Timer[[]byte]) wakebell.BatchError {
			rest := slices.DeleteFunc(timers, func(t wakebell.Timer[[]byte]) bool { return t.ID == "refused" })
			for i := range rest {
				rest[i].Body = []byte(strings.ToUpper(string(rest[i].Body)))
			}
			verdicts := next(ctx, append(rest, wakebell.Timer[[]byte]{Meta: wakebell.Meta{ID: "made up"}}))
			require.ErrorIs(t, verdicts["made up"], wakebell.ErrInvalid)
			delete(verdicts, "made up")
			verdicts["refused"] = errors.New("not called")
			return verdicts
		}
	}
	wakebelltest.Run(t, wakebell.Config{
		BatchMiddleware: []wakebell.BatchMiddleware{outer},
		Handlers: []wakebell.Handler{wakebell.HandleBatch(topic, func(ctx context.Context, timers []wakebell.Timer[string]) error {
			got.add(timers)
			require.Equal(t, "acme", ctx.Value(tenant{}))
			failed := wakebell.BatchError{}
			for _, timer := range timers {
				require.Equal(t, strings.ToUpper("body of "+timer.ID), timer.Body)
				if timer.ID == "bad" {
					failed[timer.ID] = errors.New("bad")
				}
			}
			return failed
		}, wakebell.WithBatch(inner))},
	}, func(t *testing.T, w *wakebelltest.World) {
		stacktest.ScheduleAll(t, w.Client(), topic, []string{"good", "bad", "refused"})
		w.Advance(0)
		require.Len(t, got.all(), 1)
		require.ElementsMatch(t, []string{"good", "bad"}, got.ids())
		require.Equal(t, wakebelltest.Acked, w.RequireDelivered("t", "good").Outcome)
		require.ErrorContains(t, w.RequireDelivered("t", "bad").Err, "in middleware: bad")
		require.ErrorContains(t, w.RequireDelivered("t", "refused").Err, "in middleware: not called")
	})
}

// TestMiddlewareOfSingleTimersIsRefusedForBatches checks that no middleware is left out
// silently.
func TestMiddlewareOfSingleTimersIsRefusedForBatches(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string]("t")
	single := func(next wakebell.HandlerFunc) wakebell.HandlerFunc { return next }
	many := func(next wakebell.BatchFunc) wakebell.BatchFunc { return next }
	each := func(context.Context, wakebell.Timer[string]) error { return nil }
	all := func(context.Context, []wakebell.Timer[string]) error { return nil }
	rdb := redis.NewClient(&redis.Options{})
	t.Cleanup(func() { _ = rdb.Close() })
	on := conntest.New(t, rdb, connection.Config{})
	for says, cfg := range map[string]wakebell.Config{
		"":                          {Middleware: []wakebell.Middleware{single}, BatchMiddleware: []wakebell.BatchMiddleware{}, Handlers: []wakebell.Handler{wakebell.HandleBatch(topic, all)}},
		"empty list":                {Middleware: []wakebell.Middleware{single}, Handlers: []wakebell.Handler{wakebell.HandleBatch(topic, all)}},
		"use WithBatch":             {Handlers: []wakebell.Handler{wakebell.HandleBatch(topic, all, wakebell.With(single))}},
		"With and Group":            {Handlers: wakebell.Group("g.", []wakebell.Handler{wakebell.HandleBatch(topic, all)}, single)},
		"use With":                  {Handlers: []wakebell.Handler{wakebell.Handle(topic, each, wakebell.WithBatch(many))}},
		"nil middleware":            {BatchMiddleware: []wakebell.BatchMiddleware{nil}},
		"WithBatch: nil middleware": {Handlers: []wakebell.Handler{wakebell.HandleBatch(topic, all, wakebell.WithBatch(nil))}},
	} {
		_, err := wakebell.New(stacktest.ActorSystem(), on, cfg)
		if says == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, wakebell.ErrInvalid, says)
		require.ErrorContains(t, err, says)
	}
}

func TestQueueInBatches(t *testing.T) {
	t.Parallel()
	q := queue.New[string](redistest.Name(t))
	rdb := redistest.Shared(t)
	sys := stacktest.Serve(t, rdb, wakebell.HandleQueueBatch(q, func(_ context.Context, batch []wakebell.Timer[string]) error {
		failed := wakebell.BatchError{}
		for _, m := range batch {
			if m.Body == "7" && m.Failures == 0 {
				failed[m.ID] = wakebell.RetryIn(0)
			}
		}
		return failed
	}, wakebell.BatchSize(10)))
	for i := range 30 {
		_, err := q.Publish(t.Context(), sys.Client().Queues(), fmt.Sprint(i))
		require.NoError(t, err)
	}
	counters := stacktest.AwaitCounters(t, sys, q.Name(), func(c wakebelltype.Counters) bool { return c.Acked == 30 })
	require.Equal(t, int64(1), counters.Retried)
	require.Equal(t, int64(31), counters.Delivered)
}

func TestOptionsOfBatches(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string]("t")
	one := func(context.Context, wakebell.Timer[string]) error { return nil }
	many := func(context.Context, []wakebell.Timer[string]) error { return nil }
	rdb := redis.NewClient(&redis.Options{})
	t.Cleanup(func() { _ = rdb.Close() })
	for name, c := range map[string]struct {
		handler wakebell.Handler
		err     string
	}{
		"size on Handle":      {wakebell.Handle(topic, one, wakebell.BatchSize(10)), "use HandleBatch"},
		"wait on Handle":      {wakebell.Handle(topic, one, wakebell.BatchWait(time.Second)), "use HandleBatch"},
		"wait on Forward":     {wakebell.Forward(topic, wakebell.ToActor(stacktest.ActorSystem().NewLocalPID("a")), wakebell.BatchWait(time.Second)), "with BatchSize"},
		"size too small":      {wakebell.HandleBatch(topic, many, wakebell.BatchSize(0)), "BatchSize: 0 is not within 1 and 1000"},
		"size too large":      {wakebell.HandleBatch(topic, many, wakebell.BatchSize(1001)), "BatchSize"},
		"negative wait":       {wakebell.HandleBatch(topic, many, wakebell.BatchWait(-1)), "BatchWait"},
		"no function":         {wakebell.HandleBatch[string](topic, nil), "handler"},
		"no function, queue":  {wakebell.HandleQueueBatch[string](queue.New[string]("q"), nil), "handler"},
		"size on HandleQueue": {wakebell.HandleQueue(queue.New[string]("q"), one, wakebell.BatchSize(10)), "use HandleBatch"},
	} {
		_, err := wakebell.New(stacktest.ActorSystem(), conntest.New(t, rdb, connection.Config{}), wakebell.Config{Handlers: []wakebell.Handler{c.handler}})
		require.ErrorIs(t, err, wakebell.ErrInvalid, name)
		require.ErrorContains(t, err, c.err, name)
	}
}
