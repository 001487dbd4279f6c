package actors

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
)

// restarts is a supervisor that notes when it is told to restart a child.
type restarts struct {
	actor.Supervisor
	at chan time.Time
}

func (r restarts) RestartChildren(...*actor.PID) { r.at <- time.Now() }

func TestRestartDelay(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T) {
		s := &Restart{Initial: 100 * time.Millisecond, Max: time.Second, Quiet: 10 * time.Second, Random: func() float64 { return 0.5 }}
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
		require.Equal(t, 100*time.Millisecond, fail(), "after a quiet spell")
		for range 10 * manyFailures {
			fail()
		}
		require.Equal(t, time.Second, fail())
		require.LessOrEqual(t, stats.FailureCount(), manyFailures, "what is kept is bounded")
	})
}

func TestRestartSpread(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T) {
		for random, want := range map[float64]time.Duration{0: 80 * time.Millisecond, 0.5: 100 * time.Millisecond, 1: 120 * time.Millisecond} {
			s := &Restart{Initial: 100 * time.Millisecond, Max: time.Second, Quiet: time.Minute}
			s = s.with(func() float64 { return random })
			supervisor := restarts{at: make(chan time.Time)}
			began := time.Now()
			s.HandleFailure(nil, supervisor, nil, actor.NewRestartStatistics(), nil, nil)
			require.Equal(t, want, (<-supervisor.at).Sub(began))
		}
	})
}

func TestRetryDelay(t *testing.T) {
	t.Parallel()
	r := Retry{Initial: time.Second, Max: time.Hour}
	for failures, want := range map[int]time.Duration{0: time.Second, 1: 2 * time.Second, 5: 32 * time.Second, 12: time.Hour, 1 << 40: time.Hour} {
		require.Equal(t, want, r.delay(failures, 0.5))
		require.InDelta(t, 0.8*want.Seconds(), r.delay(failures, 0).Seconds(), 1e-6)
		require.InDelta(t, 1.2*want.Seconds(), r.delay(failures, 1).Seconds(), 1e-6)
	}
}

// TestPanicsWhileStopping: one that went on would leave the parent waiting, see
// TestUpstreamHangsOnAPanicInStopping.
func TestPanicsWhileStopping(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T) {
		system := quietSystem()
		pid := spawnParent(t, system, panicsInStopping, actor.WithReceiverMiddleware(logCrashes(quiet)))
		require.NoError(t, system.Root.StopFuture(pid).Wait())
	})
}

var quiet = slog.New(slog.DiscardHandler)

func quietSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }))
}

// virtually runs a test in a bubble, and goes on until what has a timer there
// is over: protoactor counts dead letters for five seconds.
func virtually(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t)
		<-time.After(time.Minute)
	})
}

// spawnParent spawns an actor that has one child, whose receive is given.
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
