// Package host holds what the actors of a runtime share: their environment, the
// restart strategy, panic handling, and limits for log lines.
package host

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/internal/backoff"
	"github.com/wakebell/wakebell/internal/loglimit"
	"github.com/wakebell/wakebell/internal/metrics"
)

// Env is the environment of the actors of a runtime.
type Env struct {
	Logger *slog.Logger
	// Random yields numbers in [0, 1) for jitter.
	Random func() float64
	// IO counts the goroutines that call the source, so that Stop can wait for them.
	IO *sync.WaitGroup
	// Calls runs calls of the source that all pollers of a shard may make at once.
	Calls *Calls
	// LogLimit limits the log lines about timers, which peers can cause.
	LogLimit *loglimit.Limiter
	// Dispatcher runs the actors' mailboxes; nil: protoactor-go's own does.
	Dispatcher *Dispatcher
	// Options are added to the props of every actor; tests use them.
	Options []actor.PropsOption
	Metrics *metrics.Metrics // nil measures nothing
}

// Props returns the props of an actor whose crashes are logged with their stack.
// produce gets the number of the incarnation, counted from 1: messages that an
// actor sends to itself carry it, because they outlive a restart.
func (e *Env) Props(produce func(incarnation uint64) actor.Actor) *actor.Props {
	incarnation := uint64(0)
	options := slices.Clone(e.Options)
	if e.Dispatcher != nil {
		options = append(options, actor.WithDispatcher(e.Dispatcher))
	}
	return actor.PropsFromProducer(func() actor.Actor {
		incarnation++
		return LogCrashes(e.Logger, produce(incarnation))
	}, options...)
}

// UserPanic marks a panic of user code, whose stack has been logged already.
type UserPanic struct{ Reason any }

func (p UserPanic) String() string { return fmt.Sprint(p.Reason) }

// MaxProbeDelay is the longest delay between attempts while Redis is unavailable.
const MaxProbeDelay = time.Second

// IOTimeout is how long calls of the source may take to return after a stop.
const IOTimeout = time.Second

// WaitFor reports whether all goroutines of a group have returned in time.
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

// Restart is the supervision strategy of all actors: a failed actor is always
// restarted, after a delay that doubles with each failure up to a limit and is
// reset after a period without failures. protoactor's own strategies stop a child
// for good, restart it in a hot loop, or grow their delay linearly without a
// limit.
type Restart struct {
	// Initial is the delay before the first restart; it doubles with each
	// further failure, up to Max, spread by ±20 %.
	Initial, Max time.Duration
	// ResetAfter is the period without failures that resets the delay. It must be
	// above Max.
	ResetAfter time.Duration
	// Random yields numbers in [0, 1) for the spread; nil: a random source.
	Random func() float64
}

var (
	// RestartPoller is for the children of the root supervisor.
	RestartPoller = &Restart{Initial: 100 * time.Millisecond, Max: 10 * time.Second, ResetAfter: time.Minute}
	// RestartHandler is quicker: the crash of a handler has already cost its
	// timer a lease, and other timers wait for the slot.
	RestartHandler = &Restart{Initial: 10 * time.Millisecond, Max: time.Second, ResetAfter: 10 * time.Second}
)

// HandleFailure restarts child after the delay. The restart is a message; if the
// child was stopped meanwhile, it has no effect.
func (s *Restart) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID, stats *actor.RestartStatistics, _, _ any) {
	random := s.Random
	if random == nil {
		random = rand.Float64
	}
	if stats.NumberOfFailures(s.ResetAfter) == 0 {
		stats.Reset()
	}
	delay := backoff.Jitter(backoff.Exponential(s.Initial, stats.FailureCount(), s.Max), 0.2, random())
	if stats.FailureCount() >= maxFailures { // stats stores the instant of each failure
		stats.Reset()
		for range maxFailures / 2 {
			stats.Fail()
		}
	}
	stats.Fail()
	time.AfterFunc(delay, func() { supervisor.RestartChildren(child) })
}

// maxFailures bounds the stored instants of a child that keeps failing. Half as
// many doublings bring any delay to its limit.
const maxFailures = 64

// WithRandom returns s with another source of random numbers.
func (s *Restart) WithRandom(random func() float64) *Restart {
	c := *s
	c.Random = random
	return &c
}

// LogCrashes returns the actor with a Receive that logs a panic with its stack, which
// the supervisor does not receive, and panics again. It ends panics while an actor
// stops: otherwise the parent would wait forever. A middleware could do the same for
// the price of an envelope for each message.
func LogCrashes(log *slog.Logger, of actor.Actor) actor.Actor {
	logger := &crashLogger{of, log}
	if strategy, ok := of.(actor.SupervisorStrategy); ok { // which protoactor-go looks for
		return &struct {
			*crashLogger
			actor.SupervisorStrategy
		}{logger, strategy}
	}
	return logger
}

type crashLogger struct {
	actor.Actor
	log *slog.Logger
}

func (l *crashLogger) Receive(c actor.Context) {
	defer func() {
		reason := recover()
		if reason == nil {
			return
		}
		if _, ours := reason.(UserPanic); !ours {
			l.log.Error("actor crashed", "actor", c.Self().GetId(),
				"message", fmt.Sprintf("%T", c.Message()), "panic", fmt.Sprint(reason), "stack", string(debug.Stack()))
		}
		switch c.Message().(type) {
		case *actor.Stopping, *actor.Stopped:
		default:
			panic(reason)
		}
	}()
	l.Actor.Receive(c)
}

// Recovered turns a panic of call into an error: in a goroutine it would end the
// process.
func Recovered[T any](what string, call func() (T, error)) (result T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s panicked: %v", what, r)
		}
	}()
	return call()
}

// KeepSubscribed calls listen, again and again, until ctx ends. Each time that
// listen returns or panics, it calls refused and pauses for ResubscribeDelay.
func KeepSubscribed(ctx context.Context, what string, listen func() error, refused func(err error)) {
	for ctx.Err() == nil {
		_, err := Recovered(what, func() (struct{}, error) { return struct{}{}, listen() })
		if ctx.Err() != nil {
			return
		}
		refused(err)
		select {
		case <-ctx.Done():
		case <-time.After(ResubscribeDelay):
		}
	}
}

// ResubscribeDelay is the pause after a refused subscription.
const ResubscribeDelay = time.Minute

// NewLogLimiter bounds the log lines that messages of peers cause: of one topic
// or principal, and in total.
func NewLogLimiter() *loglimit.Limiter {
	return &loglimit.Limiter{Every: time.Minute, Each: 10, Total: 60}
}

var _ actor.SupervisorStrategy = (*Restart)(nil)
