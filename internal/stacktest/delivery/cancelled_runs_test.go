package delivery_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/wakebelltype"
)

// cancelling is a topic whose first runs wait until they are notified that they have ended, and
// whose second runs wait until all of them are.
type cancelling struct {
	topic  wakebell.Topic[string]
	began  chan string // ids of first runs
	causes chan error  // with which their contexts ended
	second atomic.Int64
	ended  chan struct{} // closed once the second runs may end
}

func newCancelling(t *testing.T) *cancelling {
	t.Helper()
	return &cancelling{
		topic: wakebell.NewTopic[string](redistest.Name(t)), began: make(chan string, cancelRuns),
		causes: make(chan error, cancelRuns), ended: make(chan struct{}),
	}
}

const cancelRuns = 40

func (c *cancelling) handle(ctx context.Context, timer wakebell.Timer[string]) error {
	if timer.Body == "second" {
		c.second.Add(1)
		select {
		case <-c.ended:
		case <-ctx.Done():
		}
		return nil
	}
	c.began <- timer.ID
	<-ctx.Done()
	c.causes <- context.Cause(ctx)
	return nil // it would settle the timer
}

// run has all first runs begin, ends them with cancel, and requires that each was notified and
// that none settled a second one.
func (c *cancelling) run(t *testing.T, sys *wakebell.System, cancel func(t *testing.T, id string)) {
	t.Helper()
	for i := range cancelRuns {
		_, err := c.topic.Schedule(t.Context(), sys.Client(), "first", wakebell.ID(strconv.Itoa(i)))
		require.NoError(t, err)
	}
	for range cancelRuns {
		stacktest.Receive(t, c.began)
	}
	for i := range cancelRuns {
		cancel(t, strconv.Itoa(i))
	}
	for range cancelRuns {
		require.ErrorIs(t, stacktest.Receive(t, c.causes), wakebell.ErrCancelled)
	}
	stacktest.Eventually(t, func() bool { return c.second.Load() == cancelRuns })
	stats, err := sys.Client().Stats(t.Context(), c.topic.Name())
	require.NoError(t, err)
	require.EqualValues(t, cancelRuns, stats.Total, "no cancelled run has settled the next one")
	close(c.ended)
	stacktest.Eventually(t, func() bool { return sys.Counters()[c.topic.Name()].Acked == cancelRuns })
	counters := sys.Counters()[c.topic.Name()]
	require.EqualValues(t, cancelRuns, counters.Cancelled)
	require.EqualValues(t, 2*cancelRuns, counters.Delivered)
}

// TestHandlersOfCancelledRunsAreToldWhenTheirIDsAreScheduledAtOnce checks it with hints,
// and at the next extension without.
func TestHandlersOfCancelledRunsAreToldWhenTheirIDsAreScheduledAtOnce(t *testing.T) {
	t.Parallel()
	topics := map[string][]wakebell.HandlerOption{
		"plain": nil, "shards": {wakebell.Shards(4)}, "a limit": {wakebell.MaxInFlight(4 * cancelRuns)},
		"a limit of keys": {wakebell.PerKey(2)},
	}
	for hints, rights := range map[string]string{"hints": "allchannels", "no hints": "resetchannels"} {
		for name, opts := range topics {
			t.Run(name+", "+hints, func(t *testing.T) {
				t.Parallel()
				server := redistest.Start(t)
				require.NoError(t, server.Client(t).Do(t.Context(), "ACL", "SETUSER", "plain", "on", ">secret", rights, "+@all", "~*").Err())
				rdb := server.Client(t, func(o *redis.Options) { o.Username, o.Password = "plain", "secret" })
				c := newCancelling(t)
				opts := append([]wakebell.HandlerOption{
					wakebell.MaxConcurrent(2 * cancelRuns), wakebell.LeaseTTL(6 * time.Second),
					wakebell.PollingInterval(10 * time.Millisecond), wakebell.MaxPollingInterval(20 * time.Millisecond),
				}, opts...)
				sys := stacktest.Serve(t, rdb, wakebell.Handle(c.topic, c.handle, opts...))
				c.run(t, sys, func(t *testing.T, id string) {
					t.Helper()
					found, err := c.topic.Cancel(t.Context(), sys.Client(), id)
					require.NoError(t, err)
					require.Equal(t, wakebelltype.PresenceRunning, found)
					_, err = c.topic.Schedule(t.Context(), sys.Client(), "second", wakebell.ID(id))
					require.NoError(t, err)
				})
			})
		}
	}
}

// TestHandlersAreToldOfCancelOfTopicWhenItsIDsAreScheduledAtOnce checks CancelAll.
func TestHandlersAreToldOfCancelOfTopicWhenItsIDsAreScheduledAtOnce(t *testing.T) {
	t.Parallel()
	c := newCancelling(t)
	sys := stacktest.Serve(t, redistest.Shared(t), wakebell.Handle(c.topic, c.handle, wakebell.MaxConcurrent(2*cancelRuns)))
	c.run(t, sys, func(t *testing.T, id string) {
		t.Helper()
		if id == "0" {
			n, err := sys.Client().CancelAll(t.Context(), c.topic.Name())
			require.NoError(t, err)
			require.EqualValues(t, cancelRuns, n)
		}
		_, err := c.topic.Schedule(t.Context(), sys.Client(), "second", wakebell.ID(id))
		require.NoError(t, err)
	})
}

// TestActorIsToldThatRunWasCancelledWhenItsIDIsScheduledAtOnce checks forwarded leases.
func TestActorIsToldThatRunWasCancelledWhenItsIDIsScheduledAtOnce(t *testing.T) {
	t.Parallel()
	leases, ended := make(chan *messages.Lease, 2), make(chan *messages.LeaseEnded, 2)
	sys, topic := stacktest.Forwarding(t, redistest.Shared(t), func(s *actor.ActorSystem) wakebell.Target {
		return wakebell.ToActor(s.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			switch m := c.Message().(type) {
			case *messages.Lease:
				if leases <- m; m.GetHeaders()["again"] != "" {
					c.Respond(m.Ack())
				}
			case *messages.LeaseEnded:
				ended <- m
			}
		}))).NotifyEnd()
	})
	_, err := topic.Schedule(t.Context(), sys.Client(), stacktest.Invoice{}, wakebell.ID("a"))
	require.NoError(t, err)
	first := stacktest.Receive(t, leases)
	_, err = topic.Cancel(t.Context(), sys.Client(), "a")
	require.NoError(t, err)
	_, err = topic.Schedule(t.Context(), sys.Client(), stacktest.Invoice{}, wakebell.ID("a"), wakebell.Header("again", "yes"))
	require.NoError(t, err)
	told := stacktest.Receive(t, ended)
	require.Equal(t, first.GetDelivery(), told.GetDelivery())
	require.Equal(t, messages.LeaseEnd_LEASE_END_CANCELLED, told.GetReason())
	require.Equal(t, "a", stacktest.Receive(t, leases).GetId())
}
