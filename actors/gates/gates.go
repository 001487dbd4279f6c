// Package gates holds the actor for all gates of a process: it owns the process's
// tickets and turns, sends one request per gate at a time, and extends its turns
// with one heartbeat. It knows the gates by the [Store] that it consumes. The
// package carries no compatibility promise; use package wakebell.
package gates

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/internal/loglimit"
	"github.com/wakebell/wakebell/internal/metrics"
	"github.com/wakebell/wakebell/messages/gate"
)

var (
	// ErrTurnLost says that a turn ended before it was released: its lease was
	// not extended in time, or it was revoked. It is also the cause of the turn's
	// context.
	ErrTurnLost = errors.New("the turn was lost")
	// ErrHeld says that a gate is held, or that others wait for it.
	ErrHeld = errors.New("the gate is held")
	// ErrClosed says that the gates were closed.
	ErrClosed = errors.New("the gates are closed")
)

// errGatesCrashed ends turns and waits when the gates actor crashes.
var errGatesCrashed = fmt.Errorf("%w: the gates crashed", ErrTurnLost)

// Store stores gates. Package gate has the contract.
type Store interface {
	// Part returns the part of a gate, from 0. It is always the same.
	Part(gate string) int

	Exchange(ctx context.Context, r *gate.Request) (*gate.Reply, error)
	Heartbeat(ctx context.Context, b *gate.Heartbeat) (*gate.HeartbeatReply, error)

	// Places returns the states of tickets of gates of one part.
	Places(ctx context.Context, tickets []gate.Held) ([]gate.Place, error)

	// Listen delivers the process's signals until ctx ends or listening is
	// refused. It reconnects by itself and calls subscribed whenever the
	// subscription is (re)established.
	Listen(ctx context.Context, process string, subscribed func(), deliver func(gate.Signal)) error
}

// Config configures a gates actor.
type Config struct {
	Store Store
	gate.Terms
	Logger *slog.Logger

	// Process returns a unique name for an incarnation of the actor.
	Process func() string

	// Observe receives every ticket that is issued; nil: tickets are not
	// observed.
	Observe func(TicketTaken)

	// NoHandOver switches the hand-over of turns inside the process off, see
	// handover.go.
	NoHandOver bool

	Metrics *metrics.Metrics // nil measures nothing

	Holds HoldStore // nil: the durations of turns are not stored

	random   func() float64
	held     *holds
	logLimit *loglimit.Limiter // of the log, about turns
}

// TicketTaken reports that a ticket was issued between two instants.
type TicketTaken struct {
	Gate            string
	Ticket          gate.Ticket
	Asked, Answered time.Time
}

// Gates gives access to a running gates actor.
type Gates struct {
	system *actor.ActorSystem
	pid    *actor.PID
	cfg    Config

	// permits is that of RightsChanged; nil: the rights have not changed. It is the actor's alone, and
	// outlives its restarts: requests that were permitted before the change may arrive after one.
	permits func(principal, gate string) bool

	io        sync.WaitGroup // the goroutines that call the store
	closeOnce sync.Once
	stopped   chan struct{} // closed when the actor has stopped
	closeErr  error
}

// New returns gates without an actor; Attach connects them with one.
func New(system *actor.ActorSystem, cfg Config) *Gates {
	if cfg.random == nil {
		cfg.random = rand.Float64
	}
	cfg.logLimit = host.NewLogLimiter()
	g := &Gates{system: system, stopped: make(chan struct{})}
	cfg.held = &holds{store: cfg.Holds, io: &g.io, failed: func(err error) {
		if skipped, ok := cfg.logLimit.Allow("holds"); ok {
			cfg.Logger.Warn("durations of turns not stored", "err", err, "skipped", skipped)
		}
	}}
	g.cfg = cfg
	return g
}

// Start spawns a gates actor of this name in system, beside any runtime.
// Close ends it.
func Start(system *actor.ActorSystem, name string, cfg Config) (*Gates, error) {
	g := New(system, cfg)
	pid, err := system.Root.Copy().WithGuardian(host.RestartPoller).SpawnNamed(Props(g), name)
	if err != nil {
		return nil, fmt.Errorf("spawn %q: %w", name, err)
	}
	g.pid = pid
	return g, nil
}

// PID is the PID of the gates actor. It receives *messages.AcquireTurnRequest,
// *messages.ExtendTurnRequest and *messages.ReleaseTurnRequest.
func (g *Gates) PID() *actor.PID { return g.pid }

// Acquire waits for the turn at a gate; with try it does not wait. If ctx ends
// first, the request is withdrawn. Errors: the cause of ctx, ErrHeld (try),
// ErrClosed, or those of the store.
func (g *Gates) Acquire(ctx context.Context, name string, try bool) (*Turn, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	w := &waiter{gate: name, try: try, asked: time.Now(), values: ctx, answer: make(chan turnAnswer, 1)}
	select {
	case <-g.stopped:
		return nil, ErrClosed
	default:
		g.system.Root.Send(g.pid, acquire{w})
	}
	select {
	case a := <-w.answer:
		return a.turn, a.err
	case <-g.stopped:
		return nil, ErrClosed
	case <-ctx.Done():
		g.system.Root.Send(g.pid, withdraw{w})
		return nil, context.Cause(ctx)
	}
}

// Waits reports whether a ticket of this process is waiting at a gate: it is not
// a fencing token yet.
func (g *Gates) Waits(ctx context.Context, name string, ticket uint64) (bool, error) {
	question := isWaiting{name, gate.Ticket(ticket), make(chan bool, 1)}
	select {
	case <-g.stopped:
		return false, nil
	default:
		g.system.Root.Send(g.pid, question)
	}
	select {
	case answer := <-question.answer:
		return answer, nil
	case <-g.stopped:
		return false, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// Close ends all turns and waits with ErrClosed, releases what is held, and stops
// the actor of Start. Turns with a ttl, those of remote clients, pass on when their leases
// expire. A second Close waits for the first.
func (g *Gates) Close() error {
	g.closeOnce.Do(func() {
		g.ReleaseAll()
		if err := g.system.Root.StopFuture(g.pid).Wait(); err != nil {
			g.closeErr = fmt.Errorf("stop the gates: %w", err)
		}
		g.finish(host.IOTimeout)
	})
	return g.closeErr
}

// Attach connects the gates of New with their actor, which a supervisor has
// spawned with Props.
func (g *Gates) Attach(pid *actor.PID) { g.pid = pid }

// ReleaseAll ends all turns and waits, and releases what is held, as far as the
// store permits. Without an actor it does nothing.
func (g *Gates) ReleaseAll() {
	if g.pid == nil {
		return
	}
	done := make(chan struct{})
	g.system.Root.Send(g.pid, closeGates{done})
	select {
	case <-done:
	case <-time.After(CloseLimit):
		g.cfg.Logger.Warn("gates closed before all turns were released; their leases expire", "duration", CloseLimit)
	}
}

// AfterStop ends the gates whose actor has been stopped, once, and waits up to
// limit for calls of the store. Without an actor it does nothing.
func (g *Gates) AfterStop(limit time.Duration) {
	if g.pid != nil {
		g.closeOnce.Do(func() { g.finish(limit) })
	}
}

// finish notes that the actor has stopped, and waits for calls of the store.
func (g *Gates) finish(limit time.Duration) {
	close(g.stopped)
	g.cfg.held.flush(true)
	if !host.WaitFor(&g.io, limit) {
		g.cfg.Logger.Warn("stopped while a call of the store hangs", "duration", limit)
	}
}

// CloseLimit is how long the release of all turns may take.
const CloseLimit = time.Second
