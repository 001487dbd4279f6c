package host

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/internal/actortest"
)

// These tests check the behavior of protoactor for which Wakebell has workarounds.
// The message of a failed test names the workaround that can be removed.

func TestUpstreamBackoffIsLinear(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		s := actor.NewExponentialBackoffStrategy(time.Hour, time.Second)
		supervisor, stats := restarts{at: make(chan time.Time)}, actor.NewRestartStatistics()
		system := actortest.QuietSystem()
		for n := 1; n <= 20; n++ {
			began := time.Now()
			s.HandleFailure(system, supervisor, system.NewLocalPID("child"), stats, nil, nil)
			require.InDelta(t, n, (<-supervisor.at).Sub(began).Seconds(), 1e-3,
				"the delay doubles or has a maximum now: Restart can be replaced by NewExponentialBackoffStrategy")
		}
	})
}

func TestUpstreamStopsForGoodByDefault(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		system := actortest.QuietSystem()
		pid := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			if c.Message() == "panic" {
				panic("as asked")
			}
		}))
		alive := func() bool {
			synctest.Wait()
			_, ok := system.ProcessRegistry.GetLocal(pid.GetId())
			return ok
		}
		for range 10 {
			require.True(t, alive())
			system.Root.Send(pid, "panic")
		}
		require.True(t, alive())
		system.Root.Send(pid, "panic")
		stopped := !alive()
		if !stopped {
			system.Root.Stop(pid)
		}
		require.True(t, stopped, "the 11th failure in 10 s does not stop the actor any more: the default strategy can be used")
	})
}

func TestUpstreamKeepsMessagesOverRestart(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		system := actortest.QuietSystem()
		incarnations, receivedBy := 0, 0
		pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor {
			incarnations++
			incarnation := incarnations
			return actor.ReceiveFunc(func(c actor.Context) {
				switch c.Message() {
				case "panic":
					c.Send(c.Self(), "for the first incarnation")
					panic("as asked")
				case "for the first incarnation":
					receivedBy = incarnation
				}
			})
		}))
		system.Root.Send(pid, "panic")
		synctest.Wait()
		system.Root.Stop(pid)
		synctest.Wait()
		require.Equal(t, 2, receivedBy, "messages do not survive a restart any more: the incarnation in the poller's own messages can be removed")
	})
}

func TestUpstreamHangsOnPanicInStopping(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		system := actortest.QuietSystem()
		pid := spawnParent(t, system, panicsInStopping)
		err := system.Root.StopFuture(pid).Wait()
		require.ErrorIs(t, err, actor.ErrTimeout,
			"a parent stops now even if its child panics in Stopping: LogCrashes can let that panic continue")
	})
}

func TestUpstreamDeliversMessagesWhileStopping(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		system := actortest.QuietSystem()
		received, release := false, make(chan struct{})
		pid := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			switch c.Message().(type) {
			case *actor.Started:
				c.Spawn(actor.PropsFromFunc(func(c actor.Context) {
					if _, ok := c.Message().(*actor.Stopping); ok {
						<-release
					}
				}))
			case *actor.Stopping:
				c.Send(c.Self(), "message")
			case string:
				received = true
			}
		}))
		done := system.Root.StopFuture(pid)
		synctest.Wait()
		close(release)
		require.NoError(t, done.Wait())
		require.True(t, received, "no message is delivered while children stop: the poller's Receive need not check whether it has ended")
	})
}

func TestUpstreamEventHasNoStack(t *testing.T) {
	t.Parallel()
	event := reflect.TypeFor[actor.SupervisorEvent]()
	var fields []string
	for i := range event.NumField() {
		fields = append(fields, event.Field(i).Name)
	}
	require.Equal(t, []string{"Child", "Reason", "Directive"}, fields,
		"if the event has the stack now, a subscription to it can replace LogCrashes")
}
