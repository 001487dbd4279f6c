package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"

	actorgates "github.com/wakebell/wakebell/actors/gates"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/hosted"
	"github.com/wakebell/wakebell/internal/opened"
	terms "github.com/wakebell/wakebell/messages/gate"
	"github.com/wakebell/wakebell/redisops/audit"
	"github.com/wakebell/wakebell/redisops/gates"
)

// Gates are FIFO locks with fencing tokens, shared by all processes that use
// the same Redis. A gate exists while its name is in use; a name has 1 to 512
// bytes. One turn at a time passes a gate, in the order of the requests.
//
// A lock in Redis is lost if Redis loses its data. What protects a resource is
// the fencing token: see Turn.Fence, Guard and docs/gates.md.
type Gates struct {
	store *gates.Store
	reads *gates.Store // of Show and List: store, or that of ReadFrom
	audit *audit.Log
	terms terms.Terms
	// elsewhere says that turns are taken on another Redis, and that this one serves Guard
	// only.
	elsewhere bool
	running   func() *actorgates.Gates // returns nil while they do not run
	closeOwn  func() error             // nil: they belong to a System
}

// New returns Gates on the Redis of conn. They need no System: their actor runs in an
// ActorSystem of its own until Close. New does not call Redis. Errors: ErrInvalid.
func New(conn *connection.Connection, cfg Config) (*Gates, error) {
	var running *actorgates.Gates
	g, actorConfig, err := Hosted(conn, cfg, hosted.Gates{Running: func() *actorgates.Gates { return running }})
	if err != nil {
		return nil, err
	}
	own := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler) // the Gates log by themselves
	}))
	if running, err = actorgates.Start(own, "gates", actorConfig); err != nil {
		return nil, err
	}
	g.closeOwn = running.Close
	return g, nil
}

// Hosted returns the Gates of a System, and the configuration of the actor behind them.
// Only this module can call it.
func Hosted(conn *connection.Connection, cfg Config, by hosted.Gates) (*Gates, actorgates.Config, error) {
	on, err := opened.Of((*opened.Handle)(conn))
	if err != nil {
		return nil, actorgates.Config{}, err
	}
	cfg = cfg.withDefaults()
	switches := on.Switches.Gates
	turn, invalid := cfg.terms(switches)
	store, reads, err := on.Gates()
	if err := errors.Join(invalid, err); err != nil {
		return nil, actorgates.Config{}, err
	}
	g := &Gates{store: store, reads: reads, audit: on.Audit, terms: turn, elsewhere: switches.Elsewhere, running: by.Running}
	return g, actorgates.Config{
		Store: store, Holds: store, Terms: turn, Logger: on.Logger, Process: processName, Observe: switches.Observe, Metrics: on.Metrics,
	}, nil
}

// Acquire waits for the turn at a gate until ctx ends. A ctx that ends after
// Acquire has returned does not end the turn. A waiter keeps its place while
// Redis is down.
//
// Errors: the cause of ctx; ErrInvalid; ErrClosed; ErrTurnLost if the actor of
// the Gates crashed; wakebell.ErrUnavailable if Redis is down and there is no
// place in the queue yet.
func (g *Gates) Acquire(ctx context.Context, name string) (Turn, error) {
	return g.acquire(ctx, name, false)
}

// TryAcquire takes the turn at a gate if the gate is free and has no waiters.
// Otherwise the error is ErrHeld. Other errors are those of Acquire.
func (g *Gates) TryAcquire(ctx context.Context, name string) (Turn, error) {
	return g.acquire(ctx, name, true)
}

func (g *Gates) acquire(ctx context.Context, name string, try bool) (Turn, error) {
	if err := gates.CheckName(name); err != nil {
		return nil, err
	}
	running := g.running()
	if running == nil {
		return nil, fmt.Errorf("acquire %q: %w", name, ErrClosed)
	}
	held, err := running.Acquire(ctx, name, try)
	if err != nil {
		return nil, fmt.Errorf("acquire %q: %w", name, err)
	}
	return &localTurn{held: held, gates: g}, nil
}

// With acquires the turn at a gate, calls fn and releases the turn. The context
// of fn ends with ctx, or with the cause ErrTurnLost. With returns the error of
// fn, joined with ErrTurnLost if the turn was lost before fn returned.
func (g *Gates) With(ctx context.Context, name string, fn func(ctx context.Context, fence uint64) error) error {
	turn, err := g.Acquire(ctx, name)
	if err != nil {
		return err
	}
	return turn.Do(ctx, fn)
}

// Close ends all turns and waits of these Gates with ErrClosed, and hands
// over the turns they held. It takes at most about 5 s. System.Stop closes the
// Gates of a System; Close does nothing for them.
func (g *Gates) Close() error {
	if g.closeOwn == nil {
		return nil
	}
	return g.closeOwn()
}

// PID returns the actor of the Gates, or nil while they do not run. An actor
// that sends it a *messages.AcquireTurnRequest (with Request) receives a
// *messages.Turn when it gets the turn, or a *messages.TurnRefused. It returns
// the turn with *messages.ReleaseTurnRequest and receives *messages.TurnLost if the
// turn was lost. When the actor stops, its turn or its place is released.
func (g *Gates) PID() *actor.PID {
	running := g.running()
	if running == nil {
		return nil
	}
	return running.PID()
}
