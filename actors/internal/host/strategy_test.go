package host

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/internal/actortest"
)

// restarts is a supervisor that records when it restarts its children.
type restarts struct {
	actor.Supervisor
	at chan time.Time
}

func (r restarts) RestartChildren(...*actor.PID) { r.at <- time.Now() }

func TestRestartDelay(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		s := &Restart{Initial: 100 * time.Millisecond, Max: time.Second, ResetAfter: 10 * time.Second, Random: func() float64 { return 0.5 }}
		supervisor, stats := restarts{at: make(chan time.Time)}, actor.NewRestartStatistics()
		fail := func() time.Duration {
			began := time.Now()
			s.HandleFailure(nil, supervisor, nil, stats, nil, nil)
			return (<-supervisor.at).Sub(began)
		}
		for _, want := range []int{100, 200, 400, 800, 1000, 1000} {
			require.Equal(t, time.Duration(want)*time.Millisecond, fail())
		}
		<-time.After(10 * time.Second)
		require.Equal(t, 100*time.Millisecond, fail(), "after a time without failures")
		for range 10 * maxFailures {
			fail()
		}
		require.Equal(t, time.Second, fail())
		require.LessOrEqual(t, stats.FailureCount(), maxFailures, "the number of stored failures is bounded")
	})
}

func TestRestartSpread(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		for random, want := range map[float64]time.Duration{0: 80 * time.Millisecond, 0.5: 100 * time.Millisecond, 1: 120 * time.Millisecond} {
			s := &Restart{Initial: 100 * time.Millisecond, Max: time.Second, ResetAfter: time.Minute}
			s = s.WithRandom(func() float64 { return random })
			supervisor := restarts{at: make(chan time.Time)}
			began := time.Now()
			s.HandleFailure(nil, supervisor, nil, actor.NewRestartStatistics(), nil, nil)
			require.Equal(t, want, (<-supervisor.at).Sub(began))
		}
	})
}

// TestPanicsWhileStopping checks that LogCrashes stops a panic in Stopping. The
// parent would wait forever otherwise, see TestUpstreamHangsOnPanicInStopping.
func TestPanicsWhileStopping(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		system := actortest.QuietSystem()
		pid := spawnParent(t, system, LogCrashes(actortest.DiscardLogger, actor.ReceiveFunc(panicsInStopping)).Receive)
		require.NoError(t, system.Root.StopFuture(pid).Wait())
	})
}

// spawnParent spawns an actor with one child, whose Receive is given.
func spawnParent(t *testing.T, system *actor.ActorSystem, child actor.ReceiveFunc, options ...actor.PropsOption) *actor.PID {
	t.Helper()
	ready := make(chan struct{})
	pid := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		if _, ok := c.Message().(*actor.Started); ok {
			c.Spawn(actor.PropsFromFunc(child, options...))
			close(ready)
		}
	}))
	<-ready
	return pid
}

func panicsInStopping(c actor.Context) {
	if _, ok := c.Message().(*actor.Stopping); ok {
		panic("while stopping")
	}
}
