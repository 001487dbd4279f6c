package wakebell

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	actorgates "github.com/wakebell/wakebell/actors/gates"
	"github.com/wakebell/wakebell/messages/gate"
	"github.com/wakebell/wakebell/redisops"
	"github.com/wakebell/wakebell/redisops/gates"
)

// Errors of gates.
var (
	// ErrTurnLost says that a turn ended before it was released: its lease was
	// not extended in time, or it was taken away. It is also the cause of the
	// turn's context.
	ErrTurnLost = actorgates.ErrTurnLost
	// ErrGateHeld says that a gate is held, or that others wait for it.
	ErrGateHeld = actorgates.ErrHeld
	// ErrGatesClosed says that the gates were closed, or that their System is
	// not running.
	ErrGatesClosed = actorgates.ErrClosed
	// ErrFenceStale says that a resource has seen a newer fencing token.
	ErrFenceStale = gates.ErrFenceStale
	// ErrFenceRegressed says that a token has the turn and yet the resource has
	// seen a newer one: Redis lost data, and the tokens of the gate stepped
	// back. Gates.Repair lifts them.
	ErrFenceRegressed = gates.ErrFenceRegressed
	// ErrFenceUnknown says that no turn has had a fencing token: it was made up,
	// or Redis lost the turn. Do not write.
	ErrFenceUnknown = gates.ErrFenceUnknown
	// ErrGateExhausted says that a gate has no more fencing tokens, because they
	// were lifted too far. Gates.Remove lets it begin anew.
	ErrGateExhausted = redisops.ErrGateExhausted
)

// GateKeys are the base names of what gates keep in Redis; see docs/keys.md.
type GateKeys = gates.Keys

// GatesConfig configures Gates; the zero value works. All processes that share
// gates should have the same.
type GatesConfig struct {
	// Keys are the base names of the Redis keys.
	Keys GateKeys

	// LeaseTTL is how long a turn outlives its process, 300 ms – 24 h; default
	// 10 s. While the process lives, its turns are extended at a third of it.
	// redis-fifo-lock calls it claim idle.
	LeaseTTL time.Duration

	// SignalTTL is how long a turn that was handed to a waiting process waits
	// for it before it goes on to the next, 50 ms – 1 min; default 500 ms.
	SignalTTL time.Duration

	// PresenceTTL is how long a process that does not say that it lives keeps
	// its places in the queues, 400 ms – 1 min; default 2 s. It says so at a
	// quarter of it, in one call for all it waits for.
	PresenceTTL time.Duration

	// GuardsElsewhere says that turns are taken on another Redis, and that this
	// one is only for Guard: it then outlasts a loss of the other. Guard does not
	// know there which tokens had a turn, and takes those up to a day ahead of
	// this Redis's clock.
	GuardsElsewhere bool

	// Logger; nil means slog.Default().
	Logger *slog.Logger

	observe func(actorgates.TicketTaken) // of tests
}

func (c GatesConfig) withDefaults() GatesConfig {
	c.Keys = c.Keys.WithDefaults()
	if c.LeaseTTL == 0 {
		c.LeaseTTL = 10 * time.Second
	}
	if c.SignalTTL == 0 {
		c.SignalTTL = 500 * time.Millisecond
	}
	if c.PresenceTTL == 0 {
		c.PresenceTTL = 2 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (c GatesConfig) validate() error {
	return errors.Join(
		within("LeaseTTL", c.LeaseTTL, 300*time.Millisecond, 24*time.Hour),
		within("SignalTTL", c.SignalTTL, 50*time.Millisecond, time.Minute),
		within("PresenceTTL", c.PresenceTTL, 400*time.Millisecond, time.Minute),
	)
}

func (c GatesConfig) terms() gate.Terms {
	return gate.Terms{Lease: c.LeaseTTL, Signal: c.SignalTTL, Presence: c.PresenceTTL}
}

// Gates are FIFO locks with fencing tokens, shared by all processes on a Redis.
// A gate is made by using its name, 1 – 512 bytes. One turn at a time goes
// through it, in the order in which they were asked for.
//
// A lock in Redis is lost with what Redis loses. What protects a resource is
// the fencing token: see Turn.Fence and Guard, and docs/gates.md.
type Gates struct {
	store *gates.Store
	terms gate.Terms
	away  bool                     // turns are taken on another Redis
	run   func() *actorgates.Gates // nil: not running
	end   func() error             // nil: they are a System's
}

// NewGates makes Gates on rdb, which the caller owns and closes after Close.
// They need no System: what speaks to Redis belongs to them until Close. It
// does not speak to Redis yet.
func NewGates(rdb redis.UniversalClient, cfg GatesConfig) (*Gates, error) {
	cfg = cfg.withDefaults()
	store, err := newGateStore(rdb, cfg)
	if err != nil {
		return nil, err
	}
	own := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler) // it is nobody's but ours
	}))
	running, err := actorgates.Start(own, "gates", actorGates(store, cfg))
	if err != nil {
		return nil, err
	}
	return &Gates{store: store, terms: cfg.terms(), away: cfg.GuardsElsewhere, run: func() *actorgates.Gates { return running }, end: running.Close}, nil
}

func newGateStore(rdb redis.UniversalClient, cfg GatesConfig) (*gates.Store, error) {
	store, err := gates.New(rdb, cfg.Keys, cfg.Logger)
	if err := errors.Join(cfg.validate(), err); err != nil {
		return nil, err
	}
	return store, nil
}

func actorGates(store *gates.Store, cfg GatesConfig) actorgates.Config {
	return actorgates.Config{
		Store: store, Terms: cfg.terms(), Logger: cfg.Logger, Process: processName, Observe: cfg.observe,
	}
}

// processName says who waits to whoever looks: the host, the process, and what
// tells its lives apart.
func processName() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	host = strings.NewReplacer("#", "_", "\n", "_").Replace(host)
	return fmt.Sprintf("%s:%d:%s", host, os.Getpid(), uuid.NewString()[:8])
}

// Acquire waits for the turn at a gate, for as long as ctx lasts. A ctx that
// ends after that does not end the turn. Errors: the cause of ctx, ErrInvalid,
// ErrGatesClosed, ErrTurnLost when the gates actor has crashed, or
// ErrUnavailable when there is no place to be had now; who has a place keeps
// waiting while Redis is down.
func (g *Gates) Acquire(ctx context.Context, name string) (*Turn, error) {
	return g.acquire(ctx, name, false)
}

// TryAcquire takes the turn at a gate if it is free and nobody waits:
// ErrGateHeld. Other errors are those of Acquire.
func (g *Gates) TryAcquire(ctx context.Context, name string) (*Turn, error) {
	return g.acquire(ctx, name, true)
}

func (g *Gates) acquire(ctx context.Context, name string, try bool) (*Turn, error) {
	if err := gates.CheckName(name); err != nil {
		return nil, err
	}
	running := g.run()
	if running == nil {
		return nil, fmt.Errorf("acquire %q: %w", name, ErrGatesClosed)
	}
	turn, err := running.Acquire(ctx, name, try)
	if err != nil {
		return nil, fmt.Errorf("acquire %q: %w", name, err)
	}
	return NewTurn(turnHere{turn, g}), nil
}

// With runs fn when it is its turn at a gate, and hands over when it returns.
// The context of fn ends with ctx, or with ErrTurnLost as its cause. It returns
// what fn returns, joined with ErrTurnLost if the turn was lost meanwhile.
func (g *Gates) With(ctx context.Context, name string, fn func(ctx context.Context, fence uint64) error) error {
	turn, err := g.Acquire(ctx, name)
	if err != nil {
		return err
	}
	return turn.Do(ctx, fn)
}

// Close ends all turns and waits of these Gates with ErrGatesClosed and hands
// over what they held; it takes at most about 5 s. Those of a System are closed
// by its Stop, and this does nothing.
func (g *Gates) Close() error {
	if g.end == nil {
		return nil
	}
	return g.end()
}

// PID is the gates actor, or nil when they are not running. An actor that sends
// it *messages.AcquireTurn (with Request) gets *messages.Turn when it is its
// turn, or *messages.TurnRefused, gives it back with *messages.ReleaseTurn, and
// is told with *messages.TurnLost when it was lost. When the actor ends, its
// turn or its place is given back at once.
func (g *Gates) PID() *actor.PID {
	running := g.run()
	if running == nil {
		return nil
	}
	return running.PID()
}
