// Package relay has the actor that relays the rows of an outbox to the gateway. It
// declares the Store that it consumes, and makes no compatibility promise.
package relay

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/messages"
)

// Store has the rows of an outbox.
type Store interface {
	// Claim returns the oldest rows that may be sent now. ctx lasts until the batch
	// is settled; when it ends before, the rows are free again.
	Claim(ctx context.Context) (Batch, error)
	// Measure updates the store's statistics. It is called every few seconds.
	Measure(ctx context.Context) error
}

// Batch has claimed rows in the order in which they were written.
type Batch interface {
	Items() []Item
	// More reports that further rows may wait.
	More() bool
	// Contended reports that the claim found rows behind those of another relay.
	Contended() bool
	// Settle stores the results, one for each item.
	Settle(ctx context.Context, results []Result) error
}

// Item is a claimed row.
type Item struct {
	// Stream has the rows that must not overtake each other.
	Stream string
	// Request is nil if the row is unreadable; Err has the reason.
	Request messages.Request
	Err     error
}

// Result says what became of a row.
type Result struct {
	Verdict Verdict
	Err     error // of Deferred and Rejected
}

// Verdict says what the store does with a row.
type Verdict uint8

// The verdicts.
const (
	Left     Verdict = iota // not sent, or without an answer: it is claimed again
	Relayed                 // Redis has it: the row is deleted
	Deferred                // refused for now: it is claimed again later
	Blocked                 // behind a deferred row of its stream: it waits as long
	Rejected                // refused for good: it is set aside with its error
)

// Config configures a relay.
type Config struct {
	Name    string // of the actor, unique in its ActorSystem
	Store   Store
	Gateway *actor.PID

	// Listen calls wake whenever rows were written, until ctx ends or listening
	// fails; nil: rows are found by polling.
	Listen func(ctx context.Context, wake func()) error

	PollInterval    time.Duration // between claims while nothing waits
	MeasureInterval time.Duration
	Timeout         time.Duration // of sending a batch, and of each step in the database
	Logger          *slog.Logger
}

// Counts are what a relay has done since its start.
type Counts struct{ Relayed, Deferred, Rejected int64 }

// Relay is a running relay.
type Relay struct {
	cfg    Config
	system *actor.ActorSystem
	pid    *actor.PID
	env    *host.Env

	draining atomic.Bool // also for the next incarnation
	drained  chan struct{}
	once     sync.Once // closes drained

	relayed, deferred, rejected atomic.Int64

	mu  sync.Mutex
	err error // of the last batch; nil: it succeeded
}

// Start spawns the actor.
func Start(system *actor.ActorSystem, cfg Config) (*Relay, error) {
	r := &Relay{
		cfg: cfg, system: system, drained: make(chan struct{}),
		env: &host.Env{Logger: cfg.Logger, Random: rand.Float64, IO: &sync.WaitGroup{}, LogLimit: host.NewLogLimiter()},
	}
	props := r.env.Props(func(incarnation uint64) actor.Actor {
		return &relay{Relay: r, incarnation: incarnation, log: cfg.Logger.With("actor", cfg.Name)}
	})
	pid, err := system.Root.Copy().WithGuardian(host.RestartPoller).SpawnNamed(props, cfg.Name)
	if err != nil {
		return nil, fmt.Errorf("spawn %q: %w", cfg.Name, err)
	}
	r.pid = pid
	return r, nil
}

// Wake makes the relay look for rows now.
func (r *Relay) Wake() { r.system.Root.Send(r.pid, wake{}) }

// Counts returns what the relay has done.
func (r *Relay) Counts() Counts {
	return Counts{Relayed: r.relayed.Load(), Deferred: r.deferred.Load(), Rejected: r.rejected.Load()}
}

// Err returns the error of the last batch, or nil if it succeeded.
func (r *Relay) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func (r *Relay) setErr(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

// Stop lets the batch in flight end until ctx is done, and stops the actor. Rows
// without a result stay in the outbox.
func (r *Relay) Stop(ctx context.Context) error {
	r.draining.Store(true)
	r.system.Root.Send(r.pid, wake{})
	var err error
	select {
	case <-r.drained:
	case <-ctx.Done():
		err = fmt.Errorf("a batch was interrupted: %w", context.Cause(ctx))
	}
	if stopped := r.system.Root.StopFuture(r.pid).Wait(); stopped != nil { // ends after 10 s
		return fmt.Errorf("stop %q: %w", r.cfg.Name, stopped)
	}
	if !host.WaitFor(r.env.IO, host.IOTimeout) {
		r.env.Logger.Warn("stopped while a call of the database hangs", "duration", host.IOTimeout)
	}
	if err != nil {
		return fmt.Errorf("stop %q: %w", r.cfg.Name, err)
	}
	return nil
}
