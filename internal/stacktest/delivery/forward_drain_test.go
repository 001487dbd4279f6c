package delivery_test

import (
	"context"
	"sync"
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
	"github.com/wakebell/wakebell/wakebelltype"
)

// drainTTL is longer than a drain takes.
const drainTTL = 20 * time.Second

// drained says what became of the timers "a" and "b", whose leases an actor held when a drain ended
// them.
type drained struct {
	mu       sync.Mutex
	ended    map[string][]messages.LeaseEnd // what the actor heard of each
	claimed  map[string]time.Time           // when each came to the actor
	again    map[string]time.Duration       // how long after that another node delivered it
	counters wakebelltype.Counters
}

// drainActor stops a System whose actor holds both timers, in leases of their own or in a batch.
// onEnd is called in the actor when it hears of the end of a lease, and answers it.
func drainActor(t *testing.T, each, batch bool, onEnd func(c actor.Context, l *messages.Lease, answer func(any))) *drained {
	t.Helper()
	rdb, _ := redistest.Embedded(t)
	system, topic := stacktest.ActorSystem(), wakebell.NewTopic[string]("t")
	d := &drained{ended: map[string][]messages.LeaseEnd{}, claimed: map[string]time.Time{}, again: map[string]time.Duration{}}
	type held struct {
		*messages.Lease
		from *actor.PID
	}
	leases, took := map[uint64]held{}, make(chan string, 10)
	receive := func(c actor.Context) {
		d.mu.Lock()
		defer d.mu.Unlock()
		switch m := c.Message().(type) {
		case *messages.Lease:
			leases[m.GetDelivery()], d.claimed[m.GetId()] = held{m, c.Sender()}, m.GetDelivered().AsTime()
			took <- m.GetId()
		case *messages.LeaseBatch:
			for _, l := range m.GetLeases() {
				leases[l.GetDelivery()], d.claimed[l.GetId()] = held{l, c.Sender()}, l.GetDelivered().AsTime()
				took <- l.GetId()
			}
		case *messages.LeaseEnded:
			d.ended[m.GetId()] = append(d.ended[m.GetId()], m.GetReason())
			of := leases[m.GetDelivery()]
			onEnd(c, of.Lease, func(answer any) { system.Root.Send(of.from, answer) })
		}
	}
	target := wakebell.ToEachActor(actor.PropsFromFunc(receive))
	if !each {
		target = wakebell.ToActor(system.Root.Spawn(actor.PropsFromFunc(receive)))
	}
	opts := []wakebell.HandlerOption{wakebell.LeaseTTL(drainTTL), wakebell.MaxConcurrent(2)}
	if batch {
		opts = append(opts, wakebell.BatchSize(2))
	}
	c := stacktest.Client(t, rdb, connection.Config{})
	_, err := c.Schedule(t.Context(), topic.Draft("", wakebell.ID("a")), topic.Draft("", wakebell.ID("b")))
	require.NoError(t, err)
	sys, err := wakebell.New(system, conntest.New(t, rdb, connection.Config{}), wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.Forward(topic, target.NotifyEnd(), opts...)}, DrainTimeout: 2 * time.Second,
	})
	require.NoError(t, err)
	stacktest.Launch(t, sys)
	require.ElementsMatch(t, []string{"a", "b"}, []string{<-took, <-took})
	stacktest.Serve(t, rdb, wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[string]) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.again[timer.ID] = timer.Delivered.Sub(d.claimed[timer.ID])
		return nil
	}))
	require.NoError(t, sys.Stop(), "the wait for the answers is part of the drain")
	<-time.After(2 * drainTTL)
	d.counters = sys.Counters()["t"]
	return d
}

// ofDrains runs a test for both kinds of Target, without and with batches.
func ofDrains(t *testing.T, test func(t *testing.T, each, batch bool)) {
	t.Helper()
	for name, each := range map[string]bool{"one actor": false, "an actor each": true} {
		for with, batch := range map[string]bool{"leases": false, "a batch": true} {
			t.Run(name+" with "+with, func(t *testing.T) {
				t.Parallel()
				stacktest.Virtually(t, func(t *testing.T) { test(t, each, batch) })
			})
		}
	}
}

// An actor that has not answered may still be at work: no other handler gets its timers before
// their leases have expired.
func TestDrainLeavesLeasesOfSilentActorToExpire(t *testing.T) {
	t.Parallel()
	ofDrains(t, func(t *testing.T, each, batch bool) {
		t.Helper()
		d := drainActor(t, each, batch, func(actor.Context, *messages.Lease, func(any)) {})
		once := []messages.LeaseEnd{messages.LeaseEnd_LEASE_END_DRAINING}
		require.Equal(t, map[string][]messages.LeaseEnd{"a": once, "b": once}, d.ended)
		for _, id := range []string{"a", "b"} {
			require.GreaterOrEqual(t, d.again[id], drainTTL)
		}
		require.Zero(t, d.counters.Released)
	})
}

// An actor that hears of the drain has a moment to answer.
func TestDrainTakesAnswersOfActor(t *testing.T) {
	t.Parallel()
	ofDrains(t, func(t *testing.T, each, batch bool) {
		t.Helper()
		d := drainActor(t, each, batch, func(_ actor.Context, l *messages.Lease, answer func(any)) {
			time.AfterFunc(300*time.Millisecond, func() {
				if l.GetId() == "a" {
					answer(l.Ack())
				} else {
					answer(l.Release())
				}
			})
		})
		once := []messages.LeaseEnd{messages.LeaseEnd_LEASE_END_DRAINING}
		require.Equal(t, map[string][]messages.LeaseEnd{"a": once, "b": once}, d.ended)
		require.Equal(t, int64(1), d.counters.Acked)
		require.Equal(t, int64(1), d.counters.Released)
		require.NotContains(t, d.again, "a")
		require.Less(t, d.again["b"], drainTTL, "the actor gave it back")
	})
}

// An actor that answers one lease alone, or ends, leaves the other to expire.
func TestDrainLeavesUnansweredLeaseOfActorToExpire(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(actor.Context){
		"silence": func(actor.Context) {},
		"end": func(c actor.Context) { // when it has heard of both leases
			root, self := c.ActorSystem().Root, c.Self()
			time.AfterFunc(100*time.Millisecond, func() { root.Stop(self) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ofDrains(t, func(t *testing.T, each, batch bool) {
				t.Helper()
				d := drainActor(t, each, batch, func(c actor.Context, l *messages.Lease, answer func(any)) {
					if l.GetId() == "a" {
						answer(l.Ack())
					} else {
						then(c)
					}
				})
				require.Equal(t, int64(1), d.counters.Acked)
				require.NotContains(t, d.again, "a")
				require.GreaterOrEqual(t, d.again["b"], drainTTL)
			})
		})
	}
}
