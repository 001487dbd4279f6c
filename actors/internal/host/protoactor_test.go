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

// These tests hold down what protoactor does that we work around. One that
// fails says which workaround can go.

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
				"it doubles, or is capped, at last: Restart may become NewExponentialBackoffStrategy")
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
		require.True(t, stopped, "the 11th failure in 10 s no longer stops: the strategy of our actors may be the default one")
	})
}

func TestUpstreamKeepsMailOverARestart(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		system := actortest.QuietSystem()
		lives, heardBy := 0, 0
		pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor {
			lives++
			life := lives
			return actor.ReceiveFunc(func(c actor.Context) {
				switch c.Message() {
				case "panic":
					c.Send(c.Self(), "meant for the first life")
					panic("as asked")
				case "meant for the first life":
					heardBy = life
				}
			})
		}))
		system.Root.Send(pid, "panic")
		synctest.Wait()
		system.Root.Stop(pid)
		synctest.Wait()
		require.Equal(t, 2, heardBy, "mail no longer outlives a restart: epochs in the poller's own messages may go")
	})
}

func TestUpstreamHangsOnAPanicInStopping(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		system := actortest.QuietSystem()
		pid := spawnParent(t, system, panicsInStopping)
		err := system.Root.StopFuture(pid).Wait()
		require.ErrorIs(t, err, actor.ErrTimeout,
			"a parent stops even if its child panics in Stopping: logCrashes may let that panic go on")
	})
}

func TestUpstreamDeliversMailWhileStopping(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		system := actortest.QuietSystem()
		heard, release := false, make(chan struct{})
		pid := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			switch c.Message().(type) {
			case *actor.Started:
				c.Spawn(actor.PropsFromFunc(func(c actor.Context) {
					if _, ok := c.Message().(*actor.Stopping); ok {
						<-release
					}
				}))
			case *actor.Stopping:
				c.Send(c.Self(), "mail")
			case string:
				heard = true
			}
		}))
		done := system.Root.StopFuture(pid)
		synctest.Wait()
		close(release)
		require.NoError(t, done.Wait())
		require.True(t, heard, "no mail comes while children stop: the poller's Receive need not look whether it has ended")
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
		"if it has the stack now, a subscription to it may replace logCrashes")
}
