package delivery_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/messages"
)

func TestUsersActorReceivesAndSettlesLeases(t *testing.T) {
	t.Parallel()
	got := make(chan *messages.Lease, 10)
	sys, topic := stacktest.Forwarding(t, redistest.Shared(t), stacktest.To(func(c actor.Context) {
		lease, ok := c.Message().(*messages.Lease)
		if !ok {
			return
		}
		got <- lease
		switch {
		case lease.GetId() == "bad":
			c.Respond(lease.Reject(errors.New("no such account")))
		case lease.GetAttempt() == 1:
			c.Respond(lease.NackIn(0, errors.New("busy")))
		default:
			c.Respond(lease.Ack())
		}
	}))
	_, err := topic.Schedule(t.Context(), sys.Client(), stacktest.Invoice{Number: "7", Cents: 100}, wakebell.ID("good"), wakebell.Header("x-tenant", "acme"))
	require.NoError(t, err)
	first, second := <-got, <-got
	require.Equal(t, uint32(1), first.GetAttempt())
	require.Equal(t, uint32(2), second.GetAttempt())
	require.Equal(t, uint32(1), second.GetFailures())
	require.Equal(t, "acme", second.GetHeaders()["x-tenant"])
	require.Equal(t, "good", second.GetCorrelationId())
	require.Equal(t, 30*time.Second, second.GetTtl().AsDuration())
	body, err := topic.Read(second)
	require.NoError(t, err)
	require.Equal(t, stacktest.Invoice{Number: "7", Cents: 100}, body)

	_, err = topic.Schedule(t.Context(), sys.Client(), stacktest.Invoice{}, wakebell.ID("bad"))
	require.NoError(t, err)
	require.Equal(t, "no such account", stacktest.AwaitDead(t, sys, topic.Name()).Reason)
	require.NoError(t, sys.Stop())
	require.Equal(t, int64(1), sys.Counters()[topic.Name()].Acked)
}

func TestLeaseWithoutAnswerExpires(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		got := make(chan *messages.Lease, 10)
		sys, topic := stacktest.Forwarding(t, rdb, stacktest.To(func(c actor.Context) {
			if lease, ok := c.Message().(*messages.Lease); ok {
				got <- lease
				if lease.GetAttempt() > 1 {
					c.Respond(lease.Ack())
				}
			}
		}), wakebell.LeaseTTL(200*time.Millisecond))
		_, err := topic.Schedule(t.Context(), sys.Client(), stacktest.Invoice{})
		require.NoError(t, err)
		first, second := <-got, <-got
		require.Equal(t, uint32(2), second.GetAttempt())
		require.Zero(t, second.GetFailures(), "a missing answer is not a failure")
		require.GreaterOrEqual(t, second.GetDelivered().AsTime().Sub(first.GetDelivered().AsTime()), 200*time.Millisecond)
	})
}

func TestActorThatExtendsKeepsItsLease(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		const ttl = 200 * time.Millisecond
		done := make(chan time.Duration, 1)
		sys, topic := stacktest.Forwarding(t, rdb, stacktest.To(func(c actor.Context) {
			lease, ok := c.Message().(*messages.Lease)
			if !ok {
				return
			}
			root, sender, began := c.ActorSystem().Root, c.Sender(), time.Now()
			go func() {
				for range 10 { // more than two leases
					<-time.After(ttl / 4)
					root.Send(sender, lease.Extend())
				}
				root.Send(sender, lease.Ack())
				done <- time.Since(began)
			}()
		}), wakebell.LeaseTTL(ttl))
		_, err := topic.Schedule(t.Context(), sys.Client(), stacktest.Invoice{})
		require.NoError(t, err)
		require.Greater(t, <-done, 2*ttl)
		require.Eventually(t, func() bool { return sys.Counters()[topic.Name()].Acked == 1 }, 30*time.Second, time.Millisecond)
		require.Equal(t, int64(1), sys.Counters()[topic.Name()].Delivered)
	})
}

func TestLeaseOfStoppedActorExpires(t *testing.T) {
	t.Parallel()
	sys, topic := stacktest.Forwarding(t, redistest.Shared(t), stacktest.To(func(c actor.Context) {
		if _, ok := c.Message().(*messages.Lease); ok {
			c.Stop(c.Self())
		}
	}), wakebell.LeaseTTL(time.Hour))
	_, err := topic.Schedule(t.Context(), sys.Client(), stacktest.Invoice{}, wakebell.ID("a"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return sys.Counters()[topic.Name()].Crashed == 1 }, 30*time.Second, time.Millisecond,
		"the slot is free long before the lease ends")
}

func TestEachHandlerHasActorOfItsOwn(t *testing.T) {
	t.Parallel()
	var spawned atomic.Int64
	both := make(chan string, 2)
	release := make(chan struct{})
	sys, topic := stacktest.Forwarding(t, redistest.Shared(t), func(*actor.ActorSystem) wakebell.Target {
		return wakebell.ToEachActor(actor.PropsFromProducer(func() actor.Actor {
			spawned.Add(1)
			return actor.ReceiveFunc(func(c actor.Context) {
				if lease, ok := c.Message().(*messages.Lease); ok {
					both <- lease.GetId()
					<-release
					c.Respond(lease.Ack())
				}
			})
		}))
	}, wakebell.MaxConcurrent(2))
	for _, id := range []string{"a", "b", "c"} {
		_, err := topic.Schedule(t.Context(), sys.Client(), stacktest.Invoice{}, wakebell.ID(id))
		require.NoError(t, err)
	}
	require.ElementsMatch(t, []string{"a", "b"}, []string{<-both, <-both})
	close(release)
	require.Equal(t, "c", <-both)
	require.Eventually(t, func() bool { return sys.Counters()[topic.Name()].Acked == 3 }, 30*time.Second, time.Millisecond)
	require.Equal(t, int64(2), spawned.Load())
}

func TestFailedActorIsRestartedAndItsTimerRetried(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		attempts := make(chan uint32, 4)
		sys, topic := stacktest.Forwarding(t, rdb, func(*actor.ActorSystem) wakebell.Target {
			return wakebell.ToEachActor(actor.PropsFromFunc(func(c actor.Context) {
				if lease, ok := c.Message().(*messages.Lease); ok {
					attempts <- lease.GetAttempt()
					if lease.GetAttempt() == 1 {
						panic("boom")
					}
					c.Respond(lease.Ack())
				}
			}))
		}, wakebell.LeaseTTL(200*time.Millisecond))
		_, err := topic.Schedule(t.Context(), sys.Client(), stacktest.Invoice{})
		require.NoError(t, err)
		require.Equal(t, uint32(1), <-attempts)
		require.Equal(t, uint32(2), <-attempts)
		require.Eventually(t, func() bool { return sys.Counters()[topic.Name()].Acked == 1 }, 30*time.Second, time.Millisecond)
		require.Equal(t, int64(1), sys.Counters()[topic.Name()].Crashed)
	})
}

func TestForwardingNeedsActor(t *testing.T) {
	t.Parallel()
	for _, target := range []wakebell.Target{{}, wakebell.ToActor(nil), wakebell.ToEachActor(nil)} {
		_, err := wakebell.New(actor.NewActorSystem(), conntest.New(t, redistest.Shared(t), connection.Config{}), wakebell.Config{Handlers: []wakebell.Handler{
			wakebell.Forward(wakebell.NewTopic[string]("x"), target),
		}})
		require.ErrorIs(t, err, wakebell.ErrInvalid)
		require.ErrorContains(t, err, "Forward")
	}
}
