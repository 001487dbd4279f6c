package flow_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestTailReportsBreaker follows the events of a breaker that opens and closes.
func TestTailReportsBreaker(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string](redistest.Name(t))
	sys := stacktest.Serve(t, redistest.Shared(t), wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[string]) error {
		if timer.ID == "fails" {
			return errors.New("the bank is closed")
		}
		return nil
	}, wakebell.RetryBackoff(time.Hour, time.Hour),
		wakebell.Breaker(wakebelltype.Breaker{FailureRatio: 1, Deliveries: 1, OpenFor: 10 * time.Millisecond})))
	events := stacktest.Tail(t, sys.Client(), topic.Name(), 1)
	var texts []string
	await := func(text string) {
		t.Helper()
		for {
			if e := stacktest.Receive(t, events); e.Kind == wakebelltype.EventBreaker {
				require.Empty(t, e.ID)
				require.False(t, e.At.IsZero())
				texts = append(texts, e.Text)
				if strings.HasPrefix(e.Text, text) {
					return
				}
			}
		}
	}
	stacktest.ScheduleAll(t, sys.Client(), topic, []string{"fails"})
	await("half-open")
	stacktest.ScheduleAll(t, sys.Client(), topic, []string{"succeeds"})
	await("closed")
	require.Equal(t, []string{"open for 10ms: 1 of 1 deliveries failed: the bank is closed", "half-open", "closed"}, texts)
}

// TestPanicsOpenBreaker has a handler that panics for each timer.
func TestPanicsOpenBreaker(t *testing.T) {
	t.Parallel()
	topic, delivered := wakebell.NewTopic[string]("topic"), 0
	wakebelltest.RunWith(t, connection.Config{Logger: stacktest.Quiet}, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error { delivered++; panic("no") },
			wakebell.MaxConcurrent(1), wakebell.LeaseTTL(time.Hour),
			wakebell.Breaker(wakebelltype.Breaker{FailureRatio: 1, Deliveries: 3, OpenFor: 10 * time.Minute})),
	}}, func(t *testing.T, w *wakebelltest.World) {
		stacktest.ScheduleAll(t, w.Client(), topic, stacktest.Numbered(10), wakebell.In(time.Second))
		w.Advance(time.Minute)
		require.Equal(t, 3, delivered)
		w.Advance(15 * time.Minute)
		require.Equal(t, 4, delivered, "one timer is tried")
		require.EqualValues(t, 2, w.Nodes()[0].System().Counters()["topic"].BreakerOpened)
	})
}

// TestTimersThatEndBeforeTheirHandlerDoNotOpenBreaker cancels timers while their
// handlers run, which then return an error.
func TestTimersThatEndBeforeTheirHandlerDoNotOpenBreaker(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string]("topic")
	wakebelltest.RunWith(t, connection.Config{Logger: stacktest.Quiet}, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, func(ctx context.Context, _ wakebell.Timer[string]) error {
			<-ctx.Done()
			return ctx.Err()
		}, wakebell.MaxConcurrent(10), wakebell.Breaker(wakebelltype.Breaker{FailureRatio: 0.01, Deliveries: 1})),
	}}, func(t *testing.T, w *wakebelltest.World) {
		stacktest.ScheduleAll(t, w.Client(), topic, stacktest.Numbered(5))
		w.Advance(time.Second)
		for _, id := range stacktest.Numbered(5) {
			_, err := topic.Cancel(t.Context(), w.Client(), id)
			require.NoError(t, err)
		}
		w.Advance(time.Minute)
		counters := w.Nodes()[0].System().Counters()["topic"]
		require.EqualValues(t, 5, counters.Cancelled)
		require.Zero(t, counters.BreakerOpened)
	})
}

// TestBreakerCountsTimersOfBatch has a batch of which half fail.
func TestBreakerCountsTimersOfBatch(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string]("topic")
	sizes, failing := []int(nil), true
	wakebelltest.RunWith(t, connection.Config{Logger: stacktest.Quiet}, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.HandleBatch(topic, func(_ context.Context, timers []wakebell.Timer[string]) error {
			sizes = append(sizes, len(timers))
			<-time.After(100 * time.Millisecond) // too long for a prefetch
			verdicts := wakebell.BatchError{}
			for _, each := range timers[len(timers)/2:] {
				if failing {
					verdicts[each.ID] = errors.New("no")
				}
			}
			return verdicts
		}, wakebell.BatchSize(10), wakebell.MaxConcurrent(1), wakebell.RetryBackoff(time.Hour, time.Hour),
			wakebell.Breaker(wakebelltype.Breaker{FailureRatio: 0.25, Deliveries: 20, OpenFor: time.Minute})),
	}}, func(t *testing.T, w *wakebelltest.World) {
		stacktest.ScheduleAll(t, w.Client(), topic, stacktest.Numbered(100), wakebell.In(time.Second))
		w.Advance(30 * time.Second)
		require.Equal(t, []int{10, 10}, sizes)
		failing = false
		w.Advance(time.Minute)
		require.Equal(t, []int{10, 10, 1, 10, 10, 10, 10, 10, 10, 10, 9}, sizes, "one timer is tried, then batches are full")
	})
}
