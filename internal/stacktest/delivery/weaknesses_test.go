package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/faultproxy"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// These tests cover the nine weaknesses that were shown in the Python peer, by their
// numbers. Those about time (3, 5, 6 and the second half of 8) are in
// weaknesses_time_test.go.

// Weakness 1: rescheduling an id while its handler runs loses the new timer, because
// the commit of the old one deletes both.
func TestReschedulingWhileRunningKeepsNewTimer(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	topic := wakebell.NewTopic[string](redistest.Name(t))
	started, finish := make(chan struct{}), make(chan struct{})
	fresh := make(chan wakebell.Timer[string], 1)
	sys := stacktest.Serve(t, rdb, wakebell.Handle(topic, func(ctx context.Context, timer wakebell.Timer[string]) error {
		if timer.Body == "old" {
			close(started)
			<-finish
			return ctx.Err()
		}
		fresh <- timer
		return nil
	}))
	c := sys.Client()
	_, err := topic.Schedule(t.Context(), c, "old", wakebell.ID("x"))
	require.NoError(t, err)
	stacktest.Receive(t, started)

	scheduled, err := c.Schedule(t.Context(), topic.Draft("new", wakebell.ID("x"), wakebell.In(time.Hour)))
	require.NoError(t, err)
	require.Equal(t, wakebelltype.OutcomeSuperseded, scheduled[0].Outcome)
	close(finish)
	stacktest.Eventually(t, func() bool { return sys.Counters()[topic.Name()].Superseded == 1 }, "the old one's ack is refused")

	info, content, err := c.Get(t.Context(), topic.Name(), "x")
	require.NoError(t, err)
	require.Equal(t, wakebell.StatePending, info.State)
	require.Equal(t, "new", string(content.Body))
	require.Equal(t, scheduled[0].Due, info.Due)
	_, err = topic.Schedule(t.Context(), c, "newest", wakebell.ID("x"))
	require.NoError(t, err)
	timer := stacktest.Receive(t, fresh)
	require.Equal(t, "newest", timer.Body)
	require.Equal(t, 1, timer.Attempt)
}

// Weakness 1: a handler that reschedules its own id does not run again.
func TestHandlerThatReschedulesItselfTicksOn(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[int](redistest.Name(t))
	ticks := make(chan int, 100)
	rdb := redistest.Shared(t)
	c := stacktest.Client(t, rdb, connection.Config{})
	stacktest.Serve(t, rdb, wakebell.Handle(topic, func(ctx context.Context, timer wakebell.Timer[int]) error {
		ticks <- timer.Body
		if timer.Body == 20 {
			return nil
		}
		_, err := topic.Schedule(ctx, c, timer.Body+1, wakebell.ID(timer.ID), wakebell.In(time.Millisecond))
		return err
	}))
	_, err := topic.Schedule(t.Context(), c, 1, wakebell.ID("tick"))
	require.NoError(t, err)
	for want := 1; want <= 20; want++ {
		require.Equal(t, want, stacktest.Receive(t, ticks))
	}
	stacktest.Eventually(t, func() bool { return stacktest.Count(t, c, topic.Name()) == 0 })
	require.Empty(t, ticks)
}

// Weakness 2: a stale worker's commit deletes another worker's lease.
func TestStaleVerdictLeavesNextHoldersLeaseAlone(t *testing.T) {
	t.Parallel()
	proxy := faultproxy.Start(t, redistest.SharedAddr(t))
	topic := wakebell.NewTopic[string](redistest.Name(t))
	direct := redistest.Shared(t)
	staleStarted, staleFinish := make(chan struct{}), make(chan struct{})
	stale := stacktest.Serve(t, redistest.Shared(t, func(o *redis.Options) { o.Addr = proxy.Addr }),
		wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error {
			close(staleStarted)
			<-staleFinish
			return nil
		}, wakebell.LeaseTTL(4*time.Second)))
	c := stacktest.Client(t, direct, connection.Config{})
	_, err := topic.Schedule(t.Context(), c, "x", wakebell.ID("x"))
	require.NoError(t, err)
	stacktest.Receive(t, staleStarted)
	proxy.Cut() // no heartbeat arrives, so the lease expires

	holder, finish := make(chan wakebell.Timer[string], 1), make(chan struct{})
	var alive atomic.Bool
	next := stacktest.Serve(t, direct, wakebell.Handle(topic, func(ctx context.Context, timer wakebell.Timer[string]) error {
		holder <- timer
		<-finish
		alive.Store(ctx.Err() == nil)
		return errors.New("to be tried again")
	}, wakebell.LeaseTTL(30*time.Second), wakebell.PollingInterval(10*time.Millisecond), wakebell.RetryBackoff(time.Hour, time.Hour)))
	require.Equal(t, 2, stacktest.Receive(t, holder).Attempt)

	close(staleFinish)
	before := stale.Counters()[topic.Name()]
	proxy.Mend()
	stacktest.Eventually(t, func() bool { return stale.Counters()[topic.Name()].Exchanges > before.Exchanges+1 }, "the stale ack is sent")
	require.Zero(t, stale.Counters()[topic.Name()].Acked)
	require.EqualValues(t, 1, stale.Counters()[topic.Name()].Lost)
	close(finish)
	stacktest.Eventually(t, func() bool { return next.Counters()[topic.Name()].Retried == 1 }, "the holder's own verdict counts")
	require.True(t, alive.Load())
	info, _, err := c.Get(t.Context(), topic.Name(), "x")
	require.NoError(t, err)
	require.Equal(t, wakebell.StateRetrying, info.State)
	require.Equal(t, 1, info.Failures)
}

// Weakness 4: a payload that cannot be decoded is retried for ever without reaching
// the handler.
func TestUndecodablePayloadBecomesDeadLetter(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	topic := wakebell.NewTopic[stacktest.Invoice](redistest.Name(t))
	sys := stacktest.Serve(t, rdb, wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[stacktest.Invoice]) error {
		return fmt.Errorf("the handler was called with %v", timer.Body)
	}))
	payloads := map[string]string{
		"not json":  `{"data": "{not json", "headers": {"content-type": "application/json"}}`,
		"not T":     `{"data": "[1]", "headers": {"content-type": "application/json"}}`,
		"truncated": "\x89BIN\r\n\x1a\n\x00\x01\x00\x00\x00\x12\xff\xff\xff\xff\x00\x09",
	}
	for id, payload := range payloads {
		stacktest.Peer{Rdb: rdb, Topic: topic.Name()}.Publish(t, id, payload, 1)
	}
	c := sys.Client()
	stacktest.Eventually(t, func() bool { return stacktest.Count(t, c, topic.Name()) == 0 })
	dead := stacktest.DeadLetters(t, c, topic.Name())
	require.Len(t, dead, len(payloads))
	for _, d := range dead {
		require.Contains(t, payloads, d.ID)
		require.NotEmpty(t, d.Reason)
		require.NotContains(t, d.Reason, "handler was called")
		require.Equal(t, 1, d.Attempts)
		require.Zero(t, d.Failures)
	}
	require.EqualValues(t, len(payloads), sys.Counters()[topic.Name()].Delivered, "each was delivered once")
}

// Weakness 7: handlers over the graceful timeout are not cancelled, and some claimed
// timers are not delivered.
func TestStopCancelsWhatRunsAndGivesBackRest(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		const timers, slots = 30, 10
		topic := wakebell.NewTopic[int]("t")
		causes := make(chan error, timers)
		running := make(chan struct{}, timers)
		sys := stacktest.Launch(t, stacktest.Build(t, rdb, wakebell.Config{
			DrainTimeout: 20 * time.Millisecond,
			Handlers: []wakebell.Handler{wakebell.Handle(topic, func(ctx context.Context, _ wakebell.Timer[int]) error {
				running <- struct{}{}
				<-ctx.Done()
				causes <- context.Cause(ctx)
				return ctx.Err()
			}, wakebell.MaxConcurrent(slots), wakebell.LeaseTTL(time.Hour))},
		}))
		for i := range timers {
			_, err := topic.Schedule(t.Context(), sys.Client(), i, wakebell.ID(strconv.Itoa(i)))
			require.NoError(t, err)
		}
		for range slots {
			stacktest.Receive(t, running)
		}
		require.NoError(t, sys.Stop())
		require.Len(t, causes, slots)
		for range slots {
			require.ErrorIs(t, stacktest.Receive(t, causes), wakebell.ErrDraining)
		}
		require.EqualValues(t, timers, stacktest.Count(t, sys.Client(), topic.Name()))
		for info, err := range sys.Client().List(t.Context(), topic.Name(), wakebell.Filter{}, wakebelltype.Page{}) {
			require.NoError(t, err)
			require.Equal(t, wakebell.StatePending, info.State, "nothing is leased, and no attempt counted")
		}

		// Another node claims all of them at once, although the lease was an hour.
		attempts := make(chan int, timers)
		stacktest.Serve(t, rdb, wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[int]) error {
			attempts <- timer.Attempt
			return nil
		}))
		for range timers {
			require.Equal(t, 1, stacktest.Receive(t, attempts))
		}
	})
}

// Weakness 8: each timer needs a round trip to claim and another to commit.
func TestBacklogCostsFractionOfRoundTripTimer(t *testing.T) {
	t.Parallel()
	const timers = 1000
	for slots, most := range map[int]int64{5: 2*timers/5 + 50, 100: 100} {
		t.Run(fmt.Sprint(slots, " at once"), func(t *testing.T) {
			t.Parallel()
			rdb := redistest.Start(t).Client(t)
			topic := wakebell.NewTopic[int](redistest.Name(t))
			c := stacktest.Client(t, rdb, connection.Config{})
			drafts := make([]wakebell.Draft, timers)
			for i := range drafts {
				drafts[i] = topic.Draft(i)
			}
			_, err := c.Schedule(t.Context(), drafts...)
			require.NoError(t, err)
			before := calls(t, rdb, "evalsha") + calls(t, rdb, "eval")

			handled := make(chan struct{}, timers)
			sys := stacktest.Launch(t, stacktest.Build(t, rdb, wakebell.Config{DrainTimeout: stacktest.Patience, Handlers: []wakebell.Handler{
				wakebell.Handle(topic, func(context.Context, wakebell.Timer[int]) error {
					handled <- struct{}{}
					return nil
				}, wakebell.MaxConcurrent(slots)),
			}}))
			for range timers {
				stacktest.Receive(t, handled)
			}
			require.NoError(t, sys.Stop())
			after := calls(t, rdb, "evalsha") + calls(t, rdb, "eval")
			t.Logf("%d round trips for %d timers", after-before, timers)
			require.LessOrEqual(t, after-before, most)
			require.Zero(t, stacktest.Count(t, c, topic.Name()))
		})
	}
}

// calls returns how often Redis has run a command.
func calls(t testing.TB, rdb *redis.Client, command string) int64 {
	t.Helper()
	stats, err := rdb.InfoMap(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	var n int64
	if line, ok := stats["Commandstats"]["cmdstat_"+command]; ok {
		_, err = fmt.Sscanf(line, "calls=%d,", &n)
		require.NoError(t, err)
	}
	return n
}

// Weakness 9: hash entries without a timeline member are never collected.
func TestPayloadsWithoutTimerAreCollected(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	topic := wakebell.NewTopic[string](redistest.Name(t))
	p := stacktest.Peer{Rdb: rdb, Topic: topic.Name()}
	for i := range 50 {
		require.NoError(t, rdb.HSet(t.Context(), p.Payloads(), strconv.Itoa(i), "orphan").Err())
	}
	c := stacktest.Client(t, rdb, connection.Config{})
	_, err := topic.Schedule(t.Context(), c, "kept", wakebell.ID("kept"), wakebell.In(time.Hour))
	require.NoError(t, err)
	sys := stacktest.Serve(t, rdb, wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error { return nil }))
	stacktest.Eventually(t, func() bool { return rdb.HLen(t.Context(), p.Payloads()).Val() == 1 })
	stacktest.Eventually(t, func() bool { return sys.Counters()[topic.Name()].OrphansRemoved == 50 })
	_, content, err := c.Get(t.Context(), topic.Name(), "kept")
	require.NoError(t, err)
	require.Equal(t, "kept", string(content.Body))
}
