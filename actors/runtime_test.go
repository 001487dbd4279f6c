package actors

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/messages/exchange"
)

// topicOn is a topic with short intervals.
func topicOn(s poller.Source, slots int, h poller.Handle) poller.Topic {
	return poller.Topic{Source: s, Handle: h, Settings: &poller.Settings{
		MaxConcurrent: slots, LeaseTTL: time.Minute,
		PollingInterval: 10 * time.Millisecond, MaxPollingInterval: 100 * time.Millisecond,
		Retry: poller.Retry{Initial: time.Second, Max: time.Hour, MaxFailures: 10},
	}}
}

// start starts a runtime. The test has to stop it, unless it fails: its bubble must not end
// in a panic that hides the failure.
func start(t *testing.T, system *actor.ActorSystem, name string, topics ...poller.Topic) *Runtime {
	t.Helper()
	rt, err := Start(system, Config{Name: name, Topics: topics, Logger: actortest.DiscardLogger})
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			_ = rt.Stop()
			<-time.After(time.Minute)
		}
	})
	return rt
}

func acks(context.Context, *poller.Delivery) poller.Outcome { return poller.Succeeded() }

func TestRuntimesShareActorSystem(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		system, one, two := actortest.QuietSystem(), actortest.NewMemorySource(10), actortest.NewMemorySource(10)
		a := start(t, system, "a", topicOn(one, 2, acks))
		b := start(t, system, "b", topicOn(two, 2, acks))
		_, err := Start(system, Config{Name: "a", Logger: actortest.DiscardLogger})
		require.ErrorIs(t, err, ErrNameTaken)
		<-time.After(time.Second)
		for _, s := range []*actortest.MemorySource{one, two} {
			_, _, settled, _ := s.Count()
			require.Equal(t, 10, settled)
		}
		require.NoError(t, a.Stop())
		two.Put("late")
		<-time.After(time.Second)
		_, _, settled, _ := two.Count()
		require.Equal(t, 11, settled, "the other runtime continues")
		require.NoError(t, start(t, system, "a").Stop(), "the name is free again")
		require.NoError(t, b.Stop())
	})
}

func TestNameTakenByActorOfUser(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		system := actortest.QuietSystem()
		pid, err := system.Root.SpawnNamed(actor.PropsFromFunc(func(actor.Context) {}), "taken")
		require.NoError(t, err)
		for range 2 { // the failure leaves nothing behind
			_, err = Start(system, Config{Name: "taken", Logger: actortest.DiscardLogger})
			require.ErrorIs(t, err, actor.ErrNameExists)
		}
		require.NoError(t, system.Root.StopFuture(pid).Wait())
	})
}

// TestSlotsUnderTrouble makes exchanges fail before and after they are executed, and
// handlers and the poller panic. It checks that every timer is settled, that never more
// handlers run than there are slots, and that no slot is lost.
func TestSlotsUnderTrouble(t *testing.T) {
	t.Parallel()
	for _, slots := range []int{1, 3, 120} {
		t.Run(fmt.Sprint(slots, " slots"), func(t *testing.T) {
			t.Parallel()
			actortest.InVirtualTime(t, func(t *testing.T) { slotsUnderTrouble(t, slots) })
		})
	}
}

func slotsUnderTrouble(t *testing.T, slots int) {
	t.Helper()
	timers := 30 * slots
	s, calm := actortest.NewMemorySource(timers), atomic.Bool{}
	trouble := func() error {
		switch n := rand.N(20); {
		case calm.Load():
			return nil
		case n == 0:
			return fmt.Errorf("as the test wants it: %w", exchange.ErrUnavailable)
		case n == 1:
			return errors.New("as the test wants it")
		case n == 2:
			panic("a source that panics")
		default:
			return nil
		}
	}
	s.Before, s.After = trouble, trouble
	var running atomic.Int64
	var first atomic.Bool
	release := make(chan struct{})
	system := actortest.QuietSystem()
	rt := start(t, system, "a", topicOn(s, slots, func(ctx context.Context, d *poller.Delivery) poller.Outcome {
		defer running.Add(-1)
		if n := running.Add(1); n > int64(slots) {
			t.Errorf("%d handlers run", n)
		}
		if calm.Load() {
			<-release
			return poller.Succeeded()
		}
		<-time.After(rand.N(10 * time.Millisecond))
		if first.CompareAndSwap(false, true) || rand.N(20) == 0 {
			panic("as the test wants it")
		}
		return poller.Succeeded()
	}))
	<-time.After(10 * time.Minute)
	due, leased, settled, _ := s.Count()
	require.Zero(t, due)
	require.Zero(t, leased, "the panics are settled too")
	require.Equal(t, timers, settled)

	calm.Store(true)
	for n := range slots + 1 {
		s.Put(fmt.Sprint("last ", n))
	}
	<-time.After(time.Minute)
	require.EqualValues(t, slots, running.Load(), "no slot is lost")
	close(release)
	<-time.After(time.Minute)
	require.Zero(t, running.Load())
	require.NoError(t, rt.Stop())
}

// TestLateSuccessAfterOutage lets handlers succeed while Redis is down for longer
// than their leases. It checks that no timer is handled twice: settlements are sent
// before any claim, on every stream.
func TestLateSuccessAfterOutage(t *testing.T) {
	t.Parallel()
	for _, slots := range []int{5, 120, 300} {
		t.Run(fmt.Sprint(slots, " slots"), func(t *testing.T) {
			t.Parallel()
			actortest.InVirtualTime(t, func(t *testing.T) { lateSuccess(t, slots) })
		})
	}
}

func lateSuccess(t *testing.T, slots int) {
	t.Helper()
	timers := slots - slots/10 // leaves slots for a claim
	s, down := actortest.NewMemorySource(timers), atomic.Bool{}
	s.Expires = true
	s.Before = func() error {
		if down.Load() {
			return fmt.Errorf("as the test wants it: %w", exchange.ErrUnavailable)
		}
		return nil
	}
	var handled atomic.Int64
	rt := start(t, actortest.QuietSystem(), "a", topicOn(s, slots, func(context.Context, *poller.Delivery) poller.Outcome {
		handled.Add(1)
		<-time.After(30*time.Second + rand.N(time.Minute))
		return poller.Succeeded()
	}))
	<-time.After(25 * time.Second)
	down.Store(true)
	<-time.After(2 * time.Minute)
	down.Store(false)
	<-time.After(time.Minute)
	_, _, settled, _ := s.Count()
	require.Equal(t, timers, settled)
	require.EqualValues(t, timers, handled.Load(), "deliveries")
	require.NoError(t, rt.Stop())
}

// TestIdleIsIdle checks that a poller with nothing due polls no more often than its
// polling interval allows.
func TestIdleIsIdle(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		s := actortest.NewMemorySource(0)
		rt := start(t, actortest.QuietSystem(), "a", topicOn(s, 120, acks))
		<-time.After(time.Minute)
		_, _, _, asked := s.Count()
		require.InDelta(t, 600, asked, 150, "a poll every 100 ms")
		require.NoError(t, rt.Stop())
	})
}

func TestStaleExchangeGetsNewName(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		s := actortest.NewMemorySource(3)
		stale := fmt.Errorf("as the test wants it: %w", exchange.ErrStale)
		s.Before = func() error {
			err := stale
			stale = nil
			return err
		}
		rt := start(t, actortest.QuietSystem(), "a", topicOn(s, 1, acks))
		<-time.After(10 * time.Second)
		_, _, settled, _ := s.Count()
		require.Equal(t, 3, settled)
		require.NoError(t, rt.Stop())
	})
}

// TestStopWithHandlersRunning checks that Stop does not wait for handlers. Their
// outcomes arrive while the poller waits for its children to stop.
func TestStopWithHandlersRunning(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		s := actortest.NewMemorySource(50)
		var ended atomic.Int64
		rt := start(t, actortest.QuietSystem(), "a", topicOn(s, 20, func(ctx context.Context, _ *poller.Delivery) poller.Outcome {
			<-ctx.Done()
			if errors.Is(context.Cause(ctx), poller.ErrStopped) {
				ended.Add(1)
			}
			return poller.Failed(context.Cause(ctx))
		}))
		<-time.After(time.Second)
		began := time.Now()
		require.NoError(t, rt.Stop())
		require.Zero(t, time.Since(began))
		synctest.Wait()
		require.EqualValues(t, 20, ended.Load())
		_, leased, settled, _ := s.Count()
		require.Equal(t, 20, leased, "left to their leases")
		require.Zero(t, settled)
	})
}

func TestDrainAndRemoveMeet(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		rt := start(t, actortest.QuietSystem(), "a", topicOn(actortest.NewMemorySource(5), 2, acks))
		<-time.After(time.Second)
		drained, err := rt.Drain(time.Second)
		require.NoError(t, err)
		require.Len(t, drained.GetTopics(), 1)
		_, err = rt.Remove("shelf", time.Second)
		require.NoError(t, err, "a topic that has drained can be removed")
		drained, err = rt.Drain(time.Second)
		require.NoError(t, err)
		require.Len(t, drained.GetTopics(), 1, "the answer is repeated")
		require.NoError(t, rt.Stop())
		_, err = rt.Remove("shelf", time.Second)
		require.ErrorIs(t, err, ErrNoAnswer, "the runtime has stopped")
	})
}

func TestWaitingForExtensionEnds(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		s := actortest.NewMemorySource(1)
		answers := make(chan error, 1)
		rt := start(t, actortest.QuietSystem(), "a", topicOn(s, 1, func(_ context.Context, d *poller.Delivery) poller.Outcome {
			s.Before = func() error { return errors.New("from now on it fails") }
			answers <- d.Extend(t.Context()) // with a context that does not end
			return poller.Succeeded()
		}))
		require.ErrorIs(t, <-answers, poller.ErrLeaseLost)
		require.NoError(t, rt.Stop())
	})
}
