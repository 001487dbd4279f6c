package wakebell

import (
	"cmp"
	"crypto/rand"
	"errors"
	"slices"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors"
	actorgates "github.com/wakebell/wakebell/actors/gates"
	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/hosted"
	"github.com/wakebell/wakebell/internal/keeper"
	"github.com/wakebell/wakebell/internal/opened"
	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/internal/testhook"
	"github.com/wakebell/wakebell/internal/tracing"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/redisops/progress"
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
	handlers map[string]*Handler                 // by topic without prefix; replaced as a whole when RetuneLocal changes its settings
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
	audits    chan struct{} // a join may have to be audited
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
		actors: actorSystem, handlers: map[string]*Handler{}, polled: map[string][]string{}, parts: map[string]map[string]sharding.Part{},
		removing: map[string]chan struct{}{}, divided: make(chan struct{}, 1), audits: make(chan struct{}, 1),
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
	for i := range s.cfg.Handlers {
		h := &s.cfg.Handlers[i]
		if err := s.handles(*h); err != nil {
			return nil, err
		}
		s.handlers[h.topic] = h
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

func init() {
	testhook.Hook = func(system any, h testhook.Hooks) {
		s := system.(*System)
		s.hooks, s.store.PingEvery = h, h.Idle
	}
	testhook.Kill = func(system any) error { return system.(*System).kill() }
	testhook.Audit = func(system any) {
		select {
		case system.(*System).audits <- struct{}{}:
		default:
		}
	}
	testhook.Meta = func(draft any, h testhook.Holder) (any, error) { return draft.(Draft).handedTo(h) }
	testhook.HolderOf = func(meta any) testhook.Holder { return meta.(Meta).delivery }
}

func (s *System) actorTopics() []poller.Topic {
	topics := make([]poller.Topic, 0, len(s.polled))
	for i := range s.cfg.Handlers {
		h := &s.cfg.Handlers[i]
		for _, name := range s.polled[h.topic] {
			topics = append(topics, s.actorTopic(h, name, len(s.polled[h.topic])))
		}
	}
	return topics
}

// actorTopic returns the poller of one of the physical topics of a handler.
func (s *System) actorTopic(h *Handler, physical string, shards int) poller.Topic {
	of := served{Handler: h, log: s.on.Logger}
	full := s.on.Prefix + h.topic
	source, keys := s.source(h, physical)
	if keys != nil {
		of.expiry = s.expiry(h, keys)
	}
	if s.hooks.Source != nil {
		source = s.hooks.Source(source)
	}
	mw := slices.Concat(s.decoding(*h), s.cfg.Middleware, h.set.middleware)
	tuned := s.tunable(h.set)
	tuned.Part, tuned.Shards = s.parts[h.topic][physical], shards
	measures := s.on.Metrics.Handler(physical, h.set.queue != nil)
	topic := poller.Topic{
		Source:   s.on.Metrics.Source(source),
		Handle:   measured(measures, chain(of, mw, s.tracer.Consumer())),
		Target:   h.set.target,
		Settings: &tuned,
		Policy: leasing.Policy{
			DiscardRejects:     h.set.discardRejected,
			RetryOnLeaseExpiry: h.set.retryOnExpiry,
			PanicBackoff:       h.set.panicBackoff,
			Window:             h.set.window,
			KeyRun:             h.set.keyRun,
			OverrideInterval:   s.hooks.Idle,
			ReportInterval:     s.hooks.Idle,
			ExpireAfter:        h.set.expiry.After,
			Group:              s.groups.named(h.set.group), Weight: h.set.weight,
		},
		History:   h.set.history,
		Breaker:   h.set.breaker,
		Adaptive:  h.set.adaptive,
		GroupName: h.set.group,
		NoCounts:  s.on.NoCounts,
	}
	if s.hooks.NoWindow && topic.Window == poller.AutomaticWindow {
		topic.Window = 0
	}
	if h.set.queue == nil {
		topic.ShardGroup = s.groups.named(groupOfShards + h.topic)
	}
	if physical != full {
		topic.Logical = full
	}
	if h.batch != nil {
		topic.Batch = h.set.batch
		topic.HandleBatch = measuredBatch(measures, chainBatch(of, s.aroundBatch(*h), s.tracer.Consumer()))
	}
	if q := h.set.queue; q != nil {
		topic.FinalErrors, topic.FinalCrashes = q.finalErrors, q.atMostOnce
		topic.RecordStore = queueRecords{s.queueNamed(source.Name())}
	} else {
		topic.Attachment = s.keeper(h, physical)
		if topic.Node, topic.Reporter = s.node, keys; !s.on.NoDivision {
			topic.Announcer = keys
		}
		topic.ReadOverride = s.readOverride(keys, h)
	}
	return topic
}

// keeper returns what the handlers of a topic write with. Unlike pollers they wait while Redis
// is unavailable, as a client does.
func (s *System) keeper(h *Handler, physical string) *keeper.Topic {
	return &keeper.Topic{
		Store: progress.New(s.client.store.Timers()), Joins: s.client.joins, Physical: physical, Name: h.topic, Prefix: s.on.Prefix,
		Edge: s.on.Edge, Payloads: s.on.Payloads, Limit: s.on.PayloadLimit,
		Life: cmp.Or(h.set.keepResults, defaultKeepResults), Results: h.set.results, Logger: s.on.Logger,
	}
}

// source returns the source from which the poller of a handler claims leases; the
// second is the same, nil for a queue.
func (s *System) source(h *Handler, physical string) (poller.Source, *timers.TimerSource) {
	if h.set.queue == nil {
		source := s.store.Source(physical, timers.SourceOptions{
			MaxClaims:  h.set.maxClaims(),
			DeadCap:    s.cfg.DeadLetterCap,
			SkipFailed: h.set.skipFailed,
			KeyWeights: h.set.keyWeights,
		})
		return source, source
	}
	return s.queueNamed(s.on.Prefix + h.topic).Source(h.set.queue.options(h.set, s.cfg)), nil
}

func (s *System) tunable(set settings) poller.Settings {
	t := leasing.SettingsOf(set.tuned)
	t.MaxPollingInterval = max(t.MaxPollingInterval, s.hooks.Idle)
	return t
}

// tuneAll changes the settings of all pollers of a topic. The caller holds changing.
func (s *System) tuneAll(rt *actors.Runtime, topic string, change func(*poller.Settings)) error {
	for _, name := range s.polled[topic] {
		if err := rt.Tune(name, change); err != nil {
			return err
		}
	}
	return nil
}

// addPollers starts the pollers of a handler, all or none. The caller holds changing.
func (s *System) addPollers(rt *actors.Runtime, h *Handler, names []string) error {
	for i, name := range names {
		if err := rt.Add(s.actorTopic(h, name, len(names))); err != nil {
			_, failed := s.removePollers(rt, names[:i])
			return errors.Join(err, failed)
		}
	}
	s.polled[h.topic] = slices.Clone(names)
	s.warnOfLimit(*h, names)
	return nil
}

// removePollers drains and removes pollers.
func (s *System) removePollers(rt *actors.Runtime, names []string) (*messages.Drained, error) {
	if rt == nil {
		return nil, ErrNotRunning
	}
	type answer struct {
		drained *messages.TopicDrained
		err     error
	}
	answers := make(chan answer, len(names))
	for _, name := range names {
		go func() {
			drained, err := rt.Remove(name, s.cfg.DrainTimeout)
			answers <- answer{drained, err}
		}()
	}
	all := &messages.Drained{}
	var errs []error
	for range names {
		a := <-answers
		errs = append(errs, a.err)
		if a.drained != nil {
			all.Topics = append(all.Topics, a.drained)
		}
	}
	return all, errors.Join(errs...)
}
