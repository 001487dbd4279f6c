package flow_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/internal/testhook"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestLostLeaseDoesNotOpenBreaker has a handler that fails because its lease is lost.
func TestLostLeaseDoesNotOpenBreaker(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		topic := wakebell.NewTopic[string]("t")
		stacktest.ScheduleAll(t, stacktest.Client(t, rdb, connection.Config{}), topic, []string{"a"})
		sys := stacktest.Build(t, rdb, wakebell.Config{Handlers: []wakebell.Handler{
			wakebell.Handle(topic, func(ctx context.Context, timer wakebell.Timer[string]) error {
				if timer.Attempt > 1 {
					return nil
				}
				<-ctx.Done()
				return context.Cause(ctx)
			}, wakebell.LeaseTTL(3*time.Second), wakebell.Breaker(wakebelltype.Breaker{FailureRatio: 0.01, Deliveries: 1})),
		}})
		loses := &stacktest.Losing{}
		loses.ID.Store("a")
		testhook.Hook(sys, testhook.Hooks{Source: func(s poller.Source) poller.Source {
			loses.Source = s
			return loses
		}})
		stacktest.Launch(t, sys)
		counters := stacktest.AwaitCounters(t, sys, "t", func(c wakebelltype.Counters) bool { return c.Acked == 1 })
		require.EqualValues(t, 1, counters.Lost)
		require.Zero(t, counters.BreakerOpened)
	})
}

// TestGroupOfTopicAndQueue has handlers that panic, and a bound that changes while they
// run: no place is lost, and none is used twice.
func TestGroupOfTopicAndQueue(t *testing.T) {
	t.Parallel()
	topic, messages := wakebell.NewTopic[string]("topic"), queue.New[string]("queue")
	var mu sync.Mutex
	running, most, crashed := 0, 0, map[string]bool{}
	handle := func(_ context.Context, timer wakebell.Timer[string]) error {
		mu.Lock()
		running++
		most = max(most, running)
		first := !crashed[timer.Topic]
		crashed[timer.Topic] = true
		mu.Unlock()
		<-time.After(100 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		running--
		if first {
			panic("as the test wants it")
		}
		return nil
	}
	wakebelltest.RunWith(t, connection.Config{Logger: stacktest.Quiet}, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, handle, wakebell.MaxConcurrent(4), wakebell.Weight("all", 1), wakebell.LeaseTTL(time.Second)),
		wakebell.HandleQueue(messages, handle, wakebell.MaxConcurrent(4), wakebell.Weight("all", 1), wakebell.LeaseTTL(time.Second)),
	}}, func(t *testing.T, w *wakebelltest.World) {
		stacktest.ScheduleAll(t, w.Client(), topic, stacktest.Numbered(100))
		for i := range 100 {
			_, err := messages.Publish(t.Context(), w.Client().Queues(), strconv.Itoa(i))
			require.NoError(t, err)
		}
		w.Advance(time.Second)
		require.Equal(t, 4, most)
		require.NoError(t, w.Nodes()[0].System().RetuneLocal("topic", wakebell.MaxConcurrent(8)))
		w.Advance(time.Second)
		require.Equal(t, 8, most, "the bound of the group follows")
		require.NoError(t, w.Nodes()[0].System().RetuneLocal("topic", wakebell.MaxConcurrent(1)))
		w.Advance(200 * time.Millisecond)
		most = 0
		w.Advance(time.Second)
		require.Equal(t, 4, most, "now that of the queue")
		w.Advance(time.Minute)
		c := w.Nodes()[0].System().Counters()
		require.EqualValues(t, 100, c["topic"].Acked)
		require.EqualValues(t, 100, c["queue"].Acked)
	})
}

// TestLimitsOfQueueHoldOverAllNodes has two nodes on a queue, whose handlers are slow.
func TestLimitsOfQueueHoldOverAllNodes(t *testing.T) {
	t.Parallel()
	q := queue.New[string]("q")
	var mu sync.Mutex
	var starts []time.Time
	running, most := 0, 0
	cfg := wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.HandleQueue(q, func(context.Context, wakebell.Timer[string]) error {
			mu.Lock()
			starts = append(starts, time.Now())
			running++
			most = max(most, running)
			mu.Unlock()
			<-time.After(500 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			running--
			return nil
		}, wakebell.RateLimit(10, time.Second, 5), wakebell.MaxInFlight(4), wakebell.MaxConcurrent(10)),
	}}
	wakebelltest.RunWith(t, connection.Config{Logger: stacktest.Quiet}, cfg, func(t *testing.T, w *wakebelltest.World) {
		w.Start(cfg)
		for i := range 40 {
			_, err := q.Publish(t.Context(), w.Client().Queues(), strconv.Itoa(i))
			require.NoError(t, err)
		}
		w.Advance(20 * time.Second)
		require.Len(t, starts, 40)
		require.Equal(t, 4, most)
		for i := 5; i < len(starts); i++ {
			require.GreaterOrEqual(t, starts[i].Sub(starts[i-5]), 90*time.Millisecond, "message %d", i)
		}
	})
}

func TestMaxInFlightNeedsLeasesThatExpire(t *testing.T) {
	t.Parallel()
	_, err := wakebell.New(stacktest.ActorSystem(), conntest.New(t, redistest.Shared(t), connection.Config{}), wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.HandleQueue(queue.New[string]("q"), func(context.Context, wakebell.Timer[string]) error { return nil },
			wakebell.AtMostOnce(), wakebell.MaxInFlight(1)),
	}})
	require.ErrorIs(t, err, wakebell.ErrInvalid)
	require.ErrorContains(t, err, "AtMostOnce")
}

// TestOnDeadAndRedriveHaveKey checks that a redriven timer is in the order of its key.
func TestOnDeadAndRedriveHaveKey(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		topic := wakebell.NewTopic[string]("t")
		_, c, received := stacktest.WithOnDead(t, rdb, wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error {
			return wakebell.Reject(errors.New("bad card"))
		}, wakebell.PerKey(1)))
		stacktest.ScheduleAll(t, c, topic, []string{"a"}, wakebell.Key("account-42"))
		require.Equal(t, "account-42", stacktest.Receive(t, received).Key)
		_, err := c.Redrive(t.Context(), "t", wakebelltype.RedriveOptions{})
		require.NoError(t, err)
		require.Equal(t, "account-42", stacktest.Receive(t, received).Key, "a redrive restores it")
	})
}
