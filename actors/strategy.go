package actors

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Restart is our supervision strategy: whatever fails is restarted, always,
// after a delay that doubles with each failure up to a cap and starts over
// after a quiet spell. protoactor's own strategies stop a child for good,
// restart it in a hot loop, or grow their delay linearly without a cap.
type Restart struct {
	// Initial is the delay before the first restart; it doubles with each
	// further failure, up to Max, spread by ±20 %.
	Initial, Max time.Duration
	// Quiet is how long a child must have lived without a failure for the
	// delay to start over. It must be above Max.
	Quiet time.Duration
	// Random yields numbers in [0, 1) for the spread; nil: a random source.
	Random func() float64
}

var (
	// restartPoller is for the children of the root supervisor.
	restartPoller = &Restart{Initial: 100 * time.Millisecond, Max: 10 * time.Second, Quiet: time.Minute}
	// restartHandler is quicker: a handler's crash has cost its timer a lease
	// already, and other timers wait for the slot.
	restartHandler = &Restart{Initial: 10 * time.Millisecond, Max: time.Second, Quiet: 10 * time.Second}
)

var _ actor.SupervisorStrategy = (*Restart)(nil)

// HandleFailure restarts child after the delay. The restart is a message, so
// one that comes after the child was stopped reaches nobody.
func (s *Restart) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID, stats *actor.RestartStatistics, _, _ any) {
	random := s.Random
	if random == nil {
		random = rand.Float64
	}
	if stats.NumberOfFailures(s.Quiet) == 0 {
		stats.Reset()
	}
	delay := spread(doubled(s.Initial, stats.FailureCount(), s.Max), 0.2, random())
	if stats.FailureCount() >= manyFailures { // it keeps the instant of each
		stats.Reset()
		for range manyFailures / 2 {
			stats.Fail()
		}
	}
	stats.Fail()
	time.AfterFunc(delay, func() { supervisor.RestartChildren(child) })
}

// manyFailures bounds the instants that are kept of a child that never stops
// failing. Half as many doublings bring any delay to its cap.
const manyFailures = 64

// with is s with another source of random numbers.
func (s *Restart) with(random func() float64) *Restart {
	c := *s
	c.Random = random
	return &c
}

// logCrashes logs a panic of Receive with its stack, which the supervisor
// would not see, and panics again. Panics while an actor stops end there: one
// that went on would leave its parent waiting forever.
func logCrashes(log *slog.Logger) actor.ReceiverMiddleware {
	return func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(c actor.ReceiverContext, env *actor.MessageEnvelope) {
			defer func() {
				reason := recover()
				if reason == nil {
					return
				}
				if _, ours := reason.(userPanic); !ours {
					log.Error("actor crashed", "actor", c.Self().GetId(),
						"message", fmt.Sprintf("%T", env.Message), "panic", fmt.Sprint(reason), "stack", string(debug.Stack()))
				}
				switch env.Message.(type) {
				case *actor.Stopping, *actor.Stopped:
				default:
					panic(reason)
				}
			}()
			next(c, env)
		}
	}
}
