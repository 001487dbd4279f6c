// Package relay has the actor that relays the rows of an outbox to the gateway. It
// declares the Store that it consumes, and makes no compatibility promise.
package relay

import (
	"context"
	"errors"
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

// Store has rows of an outbox.
type Store interface {
	// Claim returns rows that may be sent now. ctx lasts until the batch is settled;
	// when it ends before, the rows are free again.
	Claim(ctx context.Context) (Batch, error)
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
	// Lane has the streams that are refused for the same reason: those of a topic. A
	// queue has one stream, which is its lane.
	Lane int64
	// Alone says that the stream is the whole lane.
	Alone bool
	// Request is nil if the row is unreadable; Err has the reason.
	Request messages.Request
	Err     error
}

// Result says what became of a row.
type Result struct {
	Verdict Verdict
	Err     error // of Deferred, Rejected, and of a Parked row that was sent
	Outage  bool  // of Deferred and Parked: Redis did not answer, or has no memory
}

// Verdict says what the store does with a row.
type Verdict uint8

// The verdicts.
const (
	Left     Verdict = iota // not sent, or without an answer: it is claimed again
	Relayed                 // Redis has it: the row is deleted
	Deferred                // refused for now, others of its lane were not: it is claimed again later
	Blocked                 // behind a deferred row of its stream: it waits as long
	Parked                  // its lane is refused for now: the lane is tried again later
	Rejected                // refused for good: it is set aside with its error
)

// Config configures a relay.
type Config struct {
	Name    string // of the actor, unique in its ActorSystem
	Gateway *actor.PID

	// Ready has the rows that were not refused, and Parked those that were. An actor
	// each sends them, so that the requests of a lane that is still refused, which may
	// take the whole Timeout, do not hold up other rows. Parked may be nil.
	Ready, Parked Store

	// Measure updates statistics every MeasureInterval; nil: nothing is measured.
	Measure func(ctx context.Context) error

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
	loops  []*loop
	env    *host.Env

	draining atomic.Bool // also for the next incarnation

	relayed, deferred, rejected atomic.Int64
}

// loop is an actor of a relay, with what outlives its incarnations.
type loop struct {
	*Relay
	name    string
	store   Store
	pid     *actor.PID
	drained chan struct{}
	once    sync.Once // closes drained

	mu  sync.Mutex
	err error // of the last batch; nil: it succeeded
}

// Start spawns the actors.
func Start(system *actor.ActorSystem, cfg Config) (*Relay, error) {
	r := &Relay{
		cfg: cfg, system: system,
		env: &host.Env{Logger: cfg.Logger, Random: rand.Float64, IO: &sync.WaitGroup{}, LogLimit: host.NewLogLimiter()},
	}
	r.loops = append(r.loops, &loop{Relay: r, name: cfg.Name, store: cfg.Ready, drained: make(chan struct{})})
	if cfg.Parked != nil {
		r.loops = append(r.loops, &loop{Relay: r, name: cfg.Name + "-parked", store: cfg.Parked, drained: make(chan struct{})})
	}
	for i, l := range r.loops {
		if err := l.spawn(i == 0); err != nil {
			for _, started := range r.loops[:i] {
				err = errors.Join(err, system.Root.StopFuture(started.pid).Wait())
			}
			return nil, err
		}
	}
	return r, nil
}

// spawn starts the actor. The first one also listens and measures.
func (l *loop) spawn(first bool) error {
	props := l.env.Props(func(incarnation uint64) actor.Actor {
		return &relay{loop: l, first: first, incarnation: incarnation, log: l.cfg.Logger.With("actor", l.name)}
	})
	pid, err := l.system.Root.Copy().WithGuardian(host.RestartPoller).SpawnNamed(props, l.name)
	if err != nil {
		return fmt.Errorf("spawn %q: %w", l.name, err)
	}
	l.pid = pid
	return nil
}

// Wake makes the relay look for rows now.
func (r *Relay) Wake() {
	for _, l := range r.loops {
		r.system.Root.Send(l.pid, wake{})
	}
}

// Counts returns what the relay has done.
func (r *Relay) Counts() Counts {
	return Counts{Relayed: r.relayed.Load(), Deferred: r.deferred.Load(), Rejected: r.rejected.Load()}
}

// Err returns the error of the last batch, or nil if it succeeded.
func (r *Relay) Err() error {
	for _, l := range r.loops {
		l.mu.Lock()
		err := l.err
		l.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *loop) setErr(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

// Stop lets the batches in flight end until ctx is done, and stops the actors. Rows
// without a result stay in the outbox.
func (r *Relay) Stop(ctx context.Context) error {
	r.draining.Store(true)
	r.Wake()
	var errs []error
	for _, l := range r.loops {
		select {
		case <-l.drained:
		case <-ctx.Done():
			errs = append(errs, fmt.Errorf("stop %q: a batch was interrupted: %w", l.name, context.Cause(ctx)))
		}
	}
	for _, l := range r.loops {
		if err := r.system.Root.StopFuture(l.pid).Wait(); err != nil { // ends after 10 s
			errs = append(errs, fmt.Errorf("stop %q: %w", l.name, err))
		}
	}
	if !host.WaitFor(r.env.IO, host.IOTimeout) {
		r.env.Logger.Warn("stopped while a call of the database hangs", "duration", host.IOTimeout)
	}
	return errors.Join(errs...)
}
