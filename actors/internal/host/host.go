// Package host is what the actors of a runtime share: their environment, the
// restart strategy and backoff, panic handling, and limits for log lines.
package host

import (
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/internal/loglimit"
)

// Env is what the actors of a runtime share.
type Env struct {
	Logger *slog.Logger
	// Random yields numbers in [0, 1) for jitter.
	Random func() float64
	// IO counts the goroutines that call the source, so that Stop can wait for them.
	IO *sync.WaitGroup
	// Lines limits the log lines about timers, which peers can cause.
	LogLimit *loglimit.Limiter
	// Options are added to the props of every actor; tests use them.
	Options []actor.PropsOption
}

// Props returns the props of an actor whose crashes are logged with their stack.
// produce gets the number of the incarnation, counted from 1: messages that an
// actor sends to itself carry it, because they outlive a restart.
func (e *Env) Props(produce func(incarnation uint64) actor.Actor) *actor.Props {
	incarnation := uint64(0)
	options := append([]actor.PropsOption{actor.WithReceiverMiddleware(LogCrashes(e.Logger))}, e.Options...)
	return actor.PropsFromProducer(func() actor.Actor {
		incarnation++
		return produce(incarnation)
	}, options...)
}

// UserPanic marks a panic of user code, whose stack has been logged already.
type UserPanic struct{ Reason any }

func (p UserPanic) String() string { return fmt.Sprint(p.Reason) }

// MaxProbe is the longest delay between tries while Redis is unavailable.
const MaxProbeDelay = time.Second

// Doubled is initial · 2^n, at most limit.
func ExponentialDelay(initial time.Duration, n int, limit time.Duration) time.Duration {
	d := float64(initial) * math.Pow(2, float64(min(n, 62)))
	return time.Duration(min(d, float64(limit)))
}

// Spread varies d by up to ±fraction.
func Jitter(d time.Duration, fraction, random float64) time.Duration {
	return time.Duration(float64(d) * (1 + fraction*(2*random-1)))
}

// StopIO is how long calls of the source may take to return.
const IOTimeout = time.Second

// WaitFor reports whether all of a group have returned in time.
func WaitFor(group *sync.WaitGroup, limit time.Duration) bool {
	idle := make(chan struct{})
	go func() { group.Wait(); close(idle) }()
	select {
	case <-idle:
		return true
	case <-time.After(limit):
		return false
	}
}

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
	ResetAfter time.Duration
	// Random yields numbers in [0, 1) for the spread; nil: a random source.
	Random func() float64
}

var (
	// RestartPoller is for the children of the root supervisor.
	RestartPoller = &Restart{Initial: 100 * time.Millisecond, Max: 10 * time.Second, ResetAfter: time.Minute}
	// RestartHandler is quicker: a handler's crash has cost its timer a lease
	// already, and other timers wait for the slot.
	RestartHandler = &Restart{Initial: 10 * time.Millisecond, Max: time.Second, ResetAfter: 10 * time.Second}
)

// HandleFailure restarts child after the delay. The restart is a message, so
// one that comes after the child was stopped reaches nobody.
func (s *Restart) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID, stats *actor.RestartStatistics, _, _ any) {
	random := s.Random
	if random == nil {
		random = rand.Float64
	}
	if stats.NumberOfFailures(s.ResetAfter) == 0 {
		stats.Reset()
	}
	delay := Jitter(ExponentialDelay(s.Initial, stats.FailureCount(), s.Max), 0.2, random())
	if stats.FailureCount() >= maxFailures { // it keeps the instant of each
		stats.Reset()
		for range maxFailures / 2 {
			stats.Fail()
		}
	}
	stats.Fail()
	time.AfterFunc(delay, func() { supervisor.RestartChildren(child) })
}

// manyFailures bounds the instants that are kept of a child that never stops
// failing. Half as many doublings bring any delay to its cap.
const maxFailures = 64

// With is s with another source of random numbers.
func (s *Restart) WithRandom(random func() float64) *Restart {
	c := *s
	c.Random = random
	return &c
}

// LogCrashes logs a panic of Receive with its stack, which the supervisor
// would not see, and panics again. Panics while an actor stops end there: one
// that went on would leave its parent waiting forever.
func LogCrashes(log *slog.Logger) actor.ReceiverMiddleware {
	return func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(c actor.ReceiverContext, env *actor.MessageEnvelope) {
			defer func() {
				reason := recover()
				if reason == nil {
					return
				}
				if _, ours := reason.(UserPanic); !ours {
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

// Safely turns a panic of the source into an error: in a goroutine of ours it
// would end the process.
func Recovered[T any](what string, call func() (T, error)) (result T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s panicked: %v", what, r)
		}
	}()
	return call()
}

// ListenAgain is how long to go by polling alone after hints were refused.
const ResubscribeDelay = time.Minute

// NewLines bounds the lines of the log that messages of others cause: of one
// topic or principal, and of all of them.
func NewLogLimiter() *loglimit.Limiter {
	return &loglimit.Limiter{Every: time.Minute, Each: 10, Total: 60}
}

var _ actor.SupervisorStrategy = (*Restart)(nil)
