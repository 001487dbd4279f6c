package wakebell

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/uuid"

	"github.com/wakebell/wakebell/actors"
	actorgates "github.com/wakebell/wakebell/actors/gates"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/hosted"
	"github.com/wakebell/wakebell/internal/opened"
	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/internal/testhook"
	"github.com/wakebell/wakebell/internal/tracing"
	"github.com/wakebell/wakebell/messages"
	queuestore "github.com/wakebell/wakebell/redisops/queue"
	"github.com/wakebell/wakebell/redisops/shards"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/reminder"
	"github.com/wakebell/wakebell/wakebelltype"
)

// System is a runtime that delivers timers and messages: a root supervisor in the
// caller's ActorSystem, with a poller for each topic and queue, and a gateway for
// requests sent as messages. It is started once and stopped once.
type System struct {
	groups     groups
	cfg        Config
	on         *opened.Conn
	actors     *actor.ActorSystem
	client     *Client
	gates      *gate.Gates
	actorGates actorgates.Config
	store      *timers.Timers // the System's own, without retries
	shards     *shards.Store  // over store
	node       string         // the name under which it is announced to other nodes
	tracer     *tracing.Tracer
	hooks      testhook.Hooks // of tests

	reminders *reminder.Reminders
	reminding hosted.Parts

	changing sync.Mutex                          // serializes changes of the running System
	settings map[string]settings                 // of the handlers, by topic without prefix
	handlers map[string]Handler                  // as they were added, by topic without prefix
	polled   map[string][]string                 // the sources of their pollers
	parts    map[string]map[string]sharding.Part // of limits, by topic and source
	removing map[string]chan struct{}            // topics in removal; the channel is closed at the end
	queues   sync.Map                            // the *queuestore.Queue of the handlers, by full name

	stopping  chan struct{} // closed when Stop begins
	stopped   chan struct{} // closed when Stop is done
	mu        sync.Mutex
	started   bool            // Start succeeded, or is in progress
	runtime   *actors.Runtime // nil before Start
	stopErr   error
	unobserve func()        // ends the report of the node to the metrics
	unwatch   func()        // ends watchShards
	divided   chan struct{} // a topic may have another layout
	watches   sync.WaitGroup
	probing   *probe // of Redis, for Health; nil if none is in flight
}

// New returns a System in actorSystem on the Redis of conn. The caller owns actorSystem,
// and stops it after Stop; nil stands for one of the System's own, which logs warnings and
// errors to the Logger of conn. New does not connect to Redis and starts no actor. Its error
// wraps ErrInvalid and lists all mistakes in the configuration.
//
// protoactor-go logs the start of every ActorSystem to stderr. This line creates one
// that logs with a logger of yours, such as slog.New(slog.DiscardHandler):
//
//	actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }))
func New(actorSystem *actor.ActorSystem, conn *connection.Connection, cfg Config) (*System, error) {
	client, err := NewClient(conn)
	if err != nil {
		return nil, errors.Join(err, cfg.withDefaults().validate(""))
	}
	store, err := client.on.Untried()
	if err != nil {
		return nil, err
	}
	store.Batcher = client.store.Timers().Batcher
	if actorSystem == nil {
		actorSystem = actors.NewActorSystem(client.on.Logger)
	}
	s := &System{
		actors: actorSystem, settings: map[string]settings{}, handlers: map[string]Handler{}, polled: map[string][]string{}, parts: map[string]map[string]sharding.Part{},
		removing: map[string]chan struct{}{}, divided: make(chan struct{}, 1),
		stopping: make(chan struct{}), stopped: make(chan struct{}),
		on: client.on, client: client, store: store, shards: shards.New(store),
	}
	s.cfg = s.remind(cfg.withDefaults())
	s.gates, s.actorGates, err = gate.Hosted(conn, s.cfg.Gates, hosted.Gates{Running: s.runningGates})
	if err := errors.Join(s.cfg.validate(s.on.Prefix), err); err != nil {
		return nil, err
	}
	s.tracer = tracing.New(tracing.Config{Provider: s.on.TracerProvider, Propagator: s.on.Propagator, Child: s.on.TraceAsChild})
	s.node = nodeName(s.cfg.Name) + "/" + rand.Text()[:8] // containers may share host names and process ids
	for _, h := range s.cfg.Handlers {
		if err := s.handles(h); err != nil {
			return nil, err
		}
		s.settings[h.topic], s.handlers[h.topic] = h.set, h
	}
	return s, nil
}

// Connection returns the Connection that was passed to New.
func (s *System) Connection() *connection.Connection { return s.client.conn }

// Client returns a Client on the System's Connection. It can be used before Start and
// after Stop.
func (s *System) Client() *Client { return s.client }

// ActorSystem returns the ActorSystem that was passed to New, or the System's own.
func (s *System) ActorSystem() *actor.ActorSystem { return s.actors }

// Gates returns the System's Gates. Before Start and after Stop, Acquire returns
// gate.ErrClosed. Stop closes the gates after the handlers have ended.
func (s *System) Gates() *gate.Gates { return s.gates }

func (s *System) runningGates() *actorgates.Gates {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runtime == nil {
		return nil
	}
	gates, _ := s.runtime.Gates() // spawn has checked the error
	return gates
}

// Run starts the System, waits until ctx is done or another goroutine calls Stop, and
// stops it. It returns the error of Start, unless ctx or a Stop ended it, or else the
// error of Stop.
func (s *System) Run(ctx context.Context) error {
	err := s.Start(ctx)
	if err != nil && ctx.Err() == nil && !errors.Is(err, ErrNotRunning) {
		return err
	}
	select {
	case <-ctx.Done():
	case <-s.stopping:
	}
	return s.Stop()
}

// Start checks that Redis can store the timers, and starts the actors. ctx bounds
// Start, not the System. A System starts once: a second Start returns ErrStarted,
// unless the first one failed. A Stop meanwhile ends Start with ErrNotRunning.
func (s *System) Start(ctx context.Context) error {
	if !s.claimStart() {
		return ErrStarted
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	checked := s.check(ctx) // without the lock, because it may wait for Redis
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.spawn(checked)
	s.started = err == nil
	return err
}

// claimStart reports whether this Start may proceed; one at a time may.
func (s *System) claimStart() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started || s.ending() {
		return false
	}
	s.started = true
	return true
}

// spawn starts the actors, unless the check failed or Stop was called.
func (s *System) spawn(checked error) error {
	switch {
	case s.ending():
		return fmt.Errorf("start: %w", ErrNotRunning)
	case checked != nil:
		return fmt.Errorf("start: %w", checked)
	}
	runtime, err := actors.Start(s.actors, actors.Config{
		Gates:   &s.actorGates,
		Name:    s.cfg.Name,
		Topics:  s.actorTopics(),
		Hints:   hints{s},
		Events:  s.store,
		Node:    nodeName(s.cfg.Name),
		Version: moduleVersion(),
		OnDead:  s.onDead(),
		Timers:  s.reminding.Guard(requests{s.client, s.gates}),
		Beats:   s.schedulers(),
		Owner:   s,
		Logger:  s.on.Logger,
		Random:  s.hooks.Random,
		Metrics: s.on.Metrics,

		Records: s.store, Incarnation: uuid.NewString(),

		Reminders: s.reminding.Read,
	})
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if _, err := runtime.Gates(); err != nil {
		return errors.Join(fmt.Errorf("start: %w", err), runtime.Stop())
	}
	s.runtime, s.unobserve = runtime, s.observe(runtime)
	watching, unwatch := context.WithCancel(context.Background()) //nolint:forbidigo // Stop ends it
	s.unwatch = unwatch
	s.watches.Go(func() { s.watchShards(watching) })
	return nil
}

// checkAgain is the interval of the checks while Redis is unavailable.
const checkAgain = 250 * time.Millisecond

func (s *System) check(ctx context.Context) error {
	deadline := time.Now().Add(s.cfg.WaitForRedis)
	for logged := false; ; {
		err := s.checkOnce(ctx, s.cfg.Handlers...)
		if err == nil {
			err = s.learnPolled(ctx)
		}
		if err == nil {
			err = s.reconcile(ctx)
		}
		if err == nil || !errors.Is(err, ErrUnavailable) || !time.Now().Before(deadline) {
			return err
		}
		if !logged {
			logged = true
			s.on.Logger.WarnContext(ctx, "redis is unavailable; waiting for it", "err", err, "duration", s.cfg.WaitForRedis)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(checkAgain):
		}
	}
}

// checkOnce checks the topics and queues of handlers, and divides topics into shards.
func (s *System) checkOnce(ctx context.Context, handlers ...Handler) error {
	var topics []string
	var queues []wakebelltype.QueueKeys
	for _, h := range handlers {
		if h.set.queue == nil {
			if err := s.divide(ctx, h); err != nil {
				return err
			}
		} else {
			name := h.set.queue.name
			name.Name = s.on.Prefix + name.Name
			queues = append(queues, name)
		}
		if h.set.queue != nil {
			continue
		}
		names, err := s.physical(ctx, h)
		if err != nil {
			return err
		}
		topics = append(topics, names...)
	}
	if err := s.store.Check(ctx, topics); err != nil {
		return err
	}
	return queuestore.Check(ctx, s.store, queues)
}

// Stop drains and stops the System. The gateway refuses new requests and answers
// the accepted ones. The pollers stop claiming timers and wait up to DrainTimeout
// for running handlers; then the handlers' contexts are cancelled with the cause
// ErrDraining, and their timers are released for other nodes. If handlers did not
// return, the error wraps ErrUnfinished and names their timers.
//
// Stop may be called before Start, and more than once: later calls wait for the
// first and return its error.
func (s *System) Stop() error {
	return s.end(func(runtime *actors.Runtime) error {
		drained, err := runtime.Shutdown(s.cfg.DrainTimeout)
		return errors.Join(err, unfinished(drained))
	})
}

// end ends the runtime once; later calls wait for the first.
func (s *System) end(how func(*actors.Runtime) error) error {
	s.mu.Lock()
	if s.ending() {
		s.mu.Unlock()
		<-s.stopped
		return s.stopErr
	}
	close(s.stopping)
	runtime := s.runtime
	s.mu.Unlock()

	defer close(s.stopped)
	if runtime != nil {
		s.unwatch()
		s.watches.Wait()
		s.stopErr = how(runtime)
		s.unobserve()
	}
	return s.stopErr
}

// ending reports whether Stop has begun. Stop begins under the lock.
func (s *System) ending() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

func unfinished(d *messages.Drained) error {
	var names []string
	for _, t := range d.GetTopics() {
		for _, id := range t.GetUnfinished() {
			names = append(names, fmt.Sprintf("%q of %q", id, t.GetTopic()))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrUnfinished, strings.Join(names, ", "))
}

// Counters returns the counters of all pollers by full topic name; nil before
// Start.
func (s *System) Counters() map[string]wakebelltype.Counters {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runtime == nil {
		return nil
	}
	return s.byTopic(s.runtime.Counters())
}
