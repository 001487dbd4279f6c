// Package actors holds the actors that deliver leases: a root supervisor, a
// poller per topic and its handlers.
//
//	wakebell (root supervisor)
//	├── poller-<topic>      owns the topic's leases, streams and pace
//	│     └── handler-<n>   runs user code, one lease at a time
//	├── beat                fires recurring schedules; one for each of their parts
//	├── reminders           sets reminders for actors, and hands them out
//	├── gates               owns this process's tickets and turns at gates
//	└── gateway             schedules by message
//
// Every piece of state has one owner, which accesses it in Receive only; other actors
// send it messages. No Receive blocks: goroutines that an actor owns and ends call
// the source and run user code. A failed actor is restarted, and its leases expire.
//
// Each actor below the supervisor has a package of its own: poller, gates, gateway,
// reminders and scheduler. This package holds the Runtime and its supervisor, which
// own the topics, the drain and the outages. None of them imports Redis: they consume
// the stores that they declare. These packages carry no compatibility promise; use
// package wakebell.
package actors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/gates"
	"github.com/wakebell/wakebell/actors/gateway"
	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/actors/observe"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/actors/reminders"
	"github.com/wakebell/wakebell/actors/scheduler"
	"github.com/wakebell/wakebell/internal/metrics"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Config configures a Runtime.
type Config struct {
	// Name is the name of the root supervisor, unique in its ActorSystem.
	Name   string
	Topics []poller.Topic
	Hints  poller.Hints   // nil: timers are found by polling only
	Events observe.Events // nil: topics cannot be watched
	Node   string         // the name of this node in events and records
	// Version is that of Wakebell, for watchers.
	Version string

	Records     observe.RecordStore // nil: counts and attempts are not recorded
	Incarnation string              // of this node, unique; for Records
	Timers      gateway.Timers      // nil: there is no gateway
	Beats       []scheduler.Config  // of each part; none: this node fires no recurring schedules

	// Reminders decodes the requests to the reminders actor; nil: there is no
	// such actor.
	Reminders func(reminders.Request, *actor.PID) (reminders.Call, error)

	Logger *slog.Logger

	// OnDead is called for every dead-lettered timer, one after the other, after
	// the source has confirmed it; nil: not called. Its context ends with the
	// runtime.
	OnDead func(context.Context, observe.DeadTimer)

	// Owner is returned by the function Owner while the runtime runs.
	Owner any

	// Random yields numbers in [0, 1) for jitter; nil: a random source.
	Random func() float64

	Gates *gates.Config // nil: there are no gates

	Metrics *metrics.Metrics // nil measures nothing

	props []actor.PropsOption // of all actors but the supervisor, for tests
}

// Runtime is a running root supervisor with its pollers.
type Runtime struct {
	name     string
	system   *actor.ActorSystem
	pid      *actor.PID
	hints    poller.Hints
	timers   gateway.Timers
	beats    []scheduler.Config
	owner    any
	env      *host.Env
	deadHook *observe.DeadHook
	tail     observe.Publisher
	records  *observe.Recorder
	started  time.Time
	version  string

	draining atomic.Bool // the gateway refuses requests, in this incarnation and the next

	gates *gates.Gates // nil: there are none

	reminders func(reminders.Request, *actor.PID) (reminders.Call, error) // nil: there are none

	mu           sync.Mutex                     // guards what follows
	topics       map[string]*poller.Shared      // the supervisor alone changes them
	shards       map[string][]*poller.Shared    // those of topics that are shards, by their logical topic
	settings     *poller.Settings               // of the topic that was made last, for others that have the same
	clocks       map[string]*observe.ClockWatch // by shard
	outages      map[string]metrics.Outage      // by shard; the supervisor alone changes them
	unresponsive map[string]time.Time           // by topic, since when its poller does not answer; "": the supervisor
}

// ErrNameTaken says that the ActorSystem has a runtime of this name already.
var ErrNameTaken = errors.New("a runtime of this name is running in the actor system")

// Start spawns the root supervisor in system and waits until it has spawned its
// children. Topics must have distinct names.
func Start(system *actor.ActorSystem, cfg Config) (*Runtime, error) {
	rt := &Runtime{
		name: cfg.Name, system: system, hints: cfg.Hints, timers: cfg.Timers, beats: cfg.Beats, owner: cfg.Owner,
		env: &host.Env{
			Logger: cfg.Logger, Random: cfg.Random, IO: &sync.WaitGroup{}, Calls: &host.Calls{}, Dispatcher: &host.Dispatcher{}, Options: cfg.props,
			LogLimit: host.NewLogLimiter(), Metrics: cfg.Metrics,
		},
		topics:       map[string]*poller.Shared{},
		shards:       map[string][]*poller.Shared{},
		unresponsive: map[string]time.Time{},
		started:      time.Now(), version: cfg.Version,
		outages:   map[string]metrics.Outage{},
		reminders: cfg.Reminders,
	}
	if rt.env.Random == nil {
		rt.env.Random = rand.Float64
	}
	rt.deadHook = observe.NewDeadHook(cfg.OnDead, cfg.Logger)
	rt.records = observe.NewRecorder(cfg.Records, cfg.Node, cfg.Incarnation, cfg.Logger, rt.env.IO)
	rt.tail.Events, rt.tail.Node, rt.tail.Log, rt.tail.Io = cfg.Events, cfg.Node, cfg.Logger, rt.env.IO
	for _, t := range cfg.Topics {
		rt.addTopic(rt.newTopic(t))
	}
	if cfg.Gates != nil {
		rt.gates = gates.New(system, *cfg.Gates)
	}
	if err := extensionOf(system).add(rt); err != nil {
		return nil, err
	}
	pid, err := system.Root.Copy().WithGuardian(host.RestartPoller).SpawnNamed(supervisorProps(rt), cfg.Name)
	if err != nil {
		extensionOf(system).remove(rt)
		return nil, fmt.Errorf("spawn %q: %w", cfg.Name, err)
	}
	rt.pid = pid
	// Callers may send to the well-known names from now on: protoactor may panic
	// in a sender whose target is being spawned.
	if _, err := rt.ask(ping{}, supervisorTimeout); err != nil {
		return nil, errors.Join(err, rt.Stop())
	}
	return rt, nil
}

// PID is the root supervisor's PID. It receives *messages.Drain.
func (rt *Runtime) PID() *actor.PID { return rt.pid }

// Counters returns what the poller of each topic has done so far.
func (rt *Runtime) Counters() map[string]wakebelltype.Counters {
	all := map[string]wakebelltype.Counters{}
	for _, t := range rt.all() {
		all[t.Source.Name()] = t.Counters.Snapshot()
	}
	return all
}

// RecordsFailed returns how many attempts and batches of counts could not be written.
func (rt *Runtime) RecordsFailed() int64 { return rt.records.Failed() }

func (rt *Runtime) newTopic(t poller.Topic) *poller.Shared {
	t.Settings = rt.share(t.Settings)
	c := poller.NewShared(t, rt.env, rt.deadHook, rt.clock(t.Source.Shard()), rt.tail.Events != nil)
	c.RecordWith(rt.records)
	c.Feed.Describe = func() wakebelltype.NodeState { return rt.describe(c) }
	return c
}

// share returns the settings of the topic before, if they are the same: thousands of idle topics
// then have one copy.
func (rt *Runtime) share(s *poller.Settings) *poller.Settings {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.settings == nil || *rt.settings != *s {
		rt.settings = s
	}
	return rt.settings
}

func (rt *Runtime) addTopic(t *poller.Shared) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.topics[t.Source.Name()] = t
	if t.Logical != "" {
		rt.shards[t.Logical] = append(rt.shards[t.Logical], t)
	}
}

func (rt *Runtime) removeTopic(name string) {
	rt.mu.Lock()
	t := rt.topics[name]
	delete(rt.topics, name)
	delete(rt.unresponsive, name)
	rest := false
	if t != nil {
		all := slices.DeleteFunc(rt.shards[t.Logical], func(shard *poller.Shared) bool { return shard == t })
		if rt.shards[t.Logical] = all; len(all) == 0 {
			delete(rt.shards, t.Logical)
		}
		rest = len(rt.shards[t.Name()]) > 0 || rt.topics[t.Name()] != nil
	}
	rt.mu.Unlock() // a feed that describes the node asks for its topics
	if t != nil {
		t.Records.Remove()
		rt.tail.Leave(&t.Feed, !rest)
	}
}

func (rt *Runtime) topic(name string) (*poller.Shared, bool) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	t, ok := rt.topics[name]
	return t, ok
}

// all returns the topics in the order of their names.
func (rt *Runtime) all() []*poller.Shared {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	byName := func(a, b *poller.Shared) int { return cmp.Compare(a.Source.Name(), b.Source.Name()) }
	return slices.SortedFunc(maps.Values(rt.topics), byName)
}
