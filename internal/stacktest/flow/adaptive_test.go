package flow_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// slowing simulates a service that becomes slower beyond its capacity. The bubble of a
// test runs one goroutine of it at a time.
type slowing struct {
	mu                sync.Mutex
	capacity          float64
	fails             bool
	running, most, of int
}

func (s *slowing) call() error {
	s.mu.Lock()
	s.running++
	s.of++
	s.most = max(s.most, s.running)
	takes := time.Duration(float64(100*time.Millisecond) * max(1, float64(s.running)/s.capacity))
	s.mu.Unlock()
	<-time.After(takes)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	if s.fails {
		return errors.New("no")
	}
	return nil
}

// change sets the capacity, and forgets the highest number of calls.
func (s *slowing) change(capacity float64, fails bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.capacity, s.fails, s.most = capacity, fails, s.running
}

func concurrency(t *testing.T, w *wakebelltest.World) int {
	t.Helper()
	h := w.Nodes()[0].System().Health(t.Context())
	require.Len(t, h.Topics, 1)
	return h.Topics[0].Concurrency
}

// TestConcurrencyFollowsService has a service that loses capacity, fails and
// recovers, and a bound that is lowered.
func TestConcurrencyFollowsService(t *testing.T) {
	t.Parallel()
	topic, service := wakebell.NewTopic[string]("topic"), &slowing{capacity: 10}
	wakebelltest.RunWith(t, connection.Config{Logger: stacktest.Quiet}, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error { return service.call() },
			wakebell.MaxConcurrent(50), wakebell.RetryBackoff(time.Second, time.Second), wakebell.MaxAttempts(1_000_000),
			wakebell.AdaptiveConcurrency(wakebelltype.Adaptive{Min: 2})),
	}}, func(t *testing.T, w *wakebelltest.World) {
		require.Equal(t, 2, concurrency(t, w))
		stacktest.ScheduleAll(t, w.Client(), topic, stacktest.Numbered(900))
		w.Advance(4 * time.Second)
		require.InDelta(t, 14, concurrency(t, w), 6)
		service.change(10, true)
		w.Advance(8 * time.Second)
		require.Equal(t, 2, concurrency(t, w))
		service.change(10, false)
		w.Advance(6 * time.Second)
		require.InDelta(t, 14, concurrency(t, w), 6)
		require.LessOrEqual(t, service.most, 24)
		require.NoError(t, w.Nodes()[0].System().RetuneLocal("topic", wakebell.MaxConcurrent(5)))
		w.Advance(time.Second)
		service.change(10, false)
		w.Advance(time.Second)
		require.LessOrEqual(t, service.most, 5)
		require.EqualValues(t, 5, w.Nodes()[0].System().Counters()["topic"].Concurrency)
	})
}

// TestConcurrencyOfBatchesFollowsService counts calls, not timers.
func TestConcurrencyOfBatchesFollowsService(t *testing.T) {
	t.Parallel()
	topic, service := wakebell.NewTopic[string]("topic"), &slowing{capacity: 4}
	wakebelltest.RunWith(t, connection.Config{Logger: stacktest.Quiet}, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.HandleBatch(topic, func(context.Context, []wakebell.Timer[string]) error { return service.call() },
			wakebell.BatchSize(4), wakebell.MaxConcurrent(40), wakebell.AdaptiveConcurrency(wakebelltype.Adaptive{})),
	}}, func(t *testing.T, w *wakebelltest.World) {
		stacktest.ScheduleAll(t, w.Client(), topic, stacktest.Numbered(900))
		w.Advance(5 * time.Second)
		require.InDelta(t, 5, concurrency(t, w), 3)
		require.LessOrEqual(t, service.most, 10)
		w.Advance(time.Minute)
		require.Len(t, w.Delivered("topic"), 900)
	})
}

// TestConcurrencyOfBatchesCountsEachCall has calls whose first timer is snoozed, which says
// nothing, and calls that settle each timer themselves, before the last of their work.
func TestConcurrencyOfBatchesCountsEachCall(t *testing.T) {
	t.Parallel()
	for name, handle := range map[string]func(context.Context, []wakebell.Timer[string]) error{
		"snoozed": func(_ context.Context, timers []wakebell.Timer[string]) error {
			return wakebell.BatchError{timers[0].ID: wakebell.Snooze(time.Hour)}
		},
		"settled": func(ctx context.Context, timers []wakebell.Timer[string]) (err error) {
			for _, timer := range timers {
				err = errors.Join(err, timer.Settle(ctx, nil))
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			topic, service := wakebell.NewTopic[string]("topic"), &slowing{capacity: 4}
			wakebelltest.RunWith(t, connection.Config{Logger: stacktest.Quiet}, wakebell.Config{Handlers: []wakebell.Handler{
				wakebell.HandleBatch(topic, func(ctx context.Context, timers []wakebell.Timer[string]) error {
					verdict := handle(ctx, timers)
					return errors.Join(service.call(), verdict)
				}, wakebell.BatchSize(4), wakebell.MaxConcurrent(40), wakebell.AdaptiveConcurrency(wakebelltype.Adaptive{})),
			}}, func(t *testing.T, w *wakebelltest.World) {
				stacktest.ScheduleAll(t, w.Client(), topic, stacktest.Numbered(900))
				w.Advance(5 * time.Second)
				require.InDelta(t, 5, concurrency(t, w), 3)
				require.LessOrEqual(t, service.most, 10)
			})
		})
	}
}

// TestLowerMaxConcurrentHoldsForPrefetchedTimers lowers it while quick handlers have
// prefetched timers.
func TestLowerMaxConcurrentHoldsForPrefetchedTimers(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string]("topic")
	var mu sync.Mutex
	running, most, calls := 0, 0, 0
	var lowered chan bool
	wakebelltest.RunWith(t, connection.Config{Logger: stacktest.Quiet}, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error {
			mu.Lock()
			running, calls = running+1, calls+1
			most = max(most, running)
			if calls == 200 {
				close(lowered)
			}
			mu.Unlock()
			<-time.After(time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			running--
			return nil
		}, wakebell.MaxConcurrent(20)),
	}}, func(t *testing.T, w *wakebelltest.World) {
		lowered = make(chan bool) // of the bubble
		stacktest.ScheduleAll(t, w.Client(), topic, stacktest.Numbered(900), wakebell.In(time.Second))
		go func() {
			<-lowered
			assert.NoError(t, w.Nodes()[0].System().RetuneLocal("topic", wakebell.MaxConcurrent(2)))
			<-time.After(2 * time.Millisecond) // the handlers that ran have returned
			mu.Lock()
			defer mu.Unlock()
			assert.LessOrEqual(t, running, 2)
			most = 0
		}()
		w.Advance(time.Minute)
		require.Len(t, w.Delivered("topic"), 900)
		require.Equal(t, 2, most)
	})
}

func TestAdaptiveConcurrencyIsValidated(t *testing.T) {
	t.Parallel()
	for _, a := range []wakebelltype.Adaptive{{Min: -1}, {Min: 10_001}, {Slowdown: 1}, {Slowdown: 11}, {FailureRatio: -1}, {FailureRatio: 1.1}} {
		_, err := wakebell.New(stacktest.ActorSystem(), nil, wakebell.Config{Handlers: []wakebell.Handler{
			wakebell.Handle(wakebell.NewTopic[int]("t"), func(context.Context, wakebell.Timer[int]) error { return nil }, wakebell.AdaptiveConcurrency(a)),
		}})
		require.ErrorContains(t, err, "Adaptive.", "%+v", a)
	}
}

// TestOptionsMayBeShared applies options that fill in defaults at the same time, as Systems with
// the same options do. The race detector finds what they share.
func TestOptionsMayBeShared(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string]("shared")
	shared := []wakebell.HandlerOption{
		wakebell.AdaptiveConcurrency(wakebelltype.Adaptive{}), wakebell.Breaker(wakebelltype.Breaker{FailureRatio: 0.5}),
		wakebell.RetryBackoff(time.Second, time.Minute), wakebell.KeyWeights(map[string]int{"gold": 2}),
	}
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error { return nil }, shared...)
		})
	}
	group.Wait()
}
