// Package actors holds the actors that deliver leases: a root supervisor, a
// poller per topic and its handlers.
//
//	wakebell (root supervisor)
//	├── poller-<topic>      owns the topic's leases, streams and pace
//	│     └── handler-<n>   runs user code, one lease at a time
//	├── beat                fires recurring schedules
//	├── reminders           sets reminders for actors, and hands them out
//	└── gateway             schedules by message
//
// Every piece of state has one owner, which touches it in Receive only;
// everybody else sends it a message. No Receive blocks: the source is spoken
// to and user code is run in goroutines that an actor owns and ends. What
// fails is restarted, and its leases come back when they end.
//
// Each actor below the supervisor has a package of its own: poller, gates,
// gateway, reminders and scheduler. This one holds the Runtime and its supervisor.
// None of them knows Redis: they consume the stores that they declare. These
// packages carry no compatibility promise; use package wakebell.
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
	"github.com/asynkron/protoactor-go/extensions"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell/actors/gates"
	"github.com/wakebell/wakebell/actors/gateway"
	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/actors/reminders"
	"github.com/wakebell/wakebell/actors/scheduler"
	"github.com/wakebell/wakebell/messages"
)

// Config configures a Runtime.
type Config struct {
	// Name is the name of the root supervisor, unique in its ActorSystem.
	Name   string
	Topics []poller.Topic
	Hints  poller.Hints      // nil: timers are found by polling alone
	Events poller.Events     // nil: nobody can watch what happens
	Node   string            // how events call this node
	Timers gateway.Timers    // nil: there is no gateway
	Beat   *scheduler.Config // nil: recurring schedules are others' affair

	// Reminders reads what the actor of the reminders is asked for by message,
	// and by whom; nil: there is no such actor.
	Reminders func(reminders.Request, *actor.PID) (reminders.Call, error)

	Logger *slog.Logger

	// OnDead is called for every timer that became a dead letter, one after the
	// other, after the source has confirmed it; nil: nobody is told. Its context
	// ends with the runtime.
	OnDead func(context.Context, poller.Death)

	// Owner is what Owner returns while the runtime runs.
	Owner any

	// Random yields numbers in [0, 1) for jitter; nil: a random source.
	Random func() float64

	Gates *gates.Config // nil: there are no gates

	pollerOptions []actor.PropsOption // of all actors but the supervisor, for tests
}

// Runtime is a running root supervisor with its pollers.
type Runtime struct {
	name   string
	system *actor.ActorSystem
	pid    *actor.PID
	hints  poller.Hints
	timers gateway.Timers
	beat   *scheduler.Config
	owner  any
	env    *host.Env
	dead   *poller.Hook
	tail   poller.Tail

	draining atomic.Bool // the gateway takes no more, in this life and the next

	gates *gates.Gates // nil: there are none

	reminders func(reminders.Request, *actor.PID) (reminders.Call, error) // nil: there are none

	mu     sync.Mutex                    // guards what follows
	topics map[string]*poller.Shared     // the supervisor alone changes them
	clocks map[string]*poller.ClockWatch // by shard
	silent map[string]time.Time          // who does not answer, by topic, since when
}

// ErrNameTaken says that the ActorSystem has a runtime of this name already.
var ErrNameTaken = errors.New("a runtime of this name is running in the actor system")

// Start spawns the root supervisor in system and waits until it has spawned
// what it supervises. Topics must have distinct names.
func Start(system *actor.ActorSystem, cfg Config) (*Runtime, error) {
	rt := &Runtime{
		name: cfg.Name, system: system, hints: cfg.Hints, timers: cfg.Timers, beat: cfg.Beat, owner: cfg.Owner,
		env:       &host.Env{Logger: cfg.Logger, Random: cfg.Random, IO: &sync.WaitGroup{}, Options: cfg.pollerOptions, Lines: host.NewLines()},
		topics:    map[string]*poller.Shared{},
		silent:    map[string]time.Time{},
		reminders: cfg.Reminders,
	}
	if rt.env.Random == nil {
		rt.env.Random = rand.Float64
	}
	rt.dead = poller.NewHook(cfg.OnDead, cfg.Logger)
	rt.tail.Events, rt.tail.Node, rt.tail.Log, rt.tail.Io = cfg.Events, cfg.Node, cfg.Logger, rt.env.IO
	for _, t := range cfg.Topics {
		rt.keep(rt.newTopic(t))
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
	// Whoever knows a name of ours may use it from now on: protoactor may panic
	// in who sends to a name that is being spawned.
	if _, err := rt.ask(areYouThere{}, liveTimeout); err != nil {
		return nil, errors.Join(err, rt.Stop())
	}
	return rt, nil
}

// PID is the root supervisor. It understands *messages.Drain.
func (rt *Runtime) PID() *actor.PID { return rt.pid }

// Counters returns what each topic's poller did so far.
func (rt *Runtime) Counters() map[string]poller.Counters {
	all := map[string]poller.Counters{}
	for _, t := range rt.all() {
		all[t.Source.Name()] = t.Counters.Snapshot()
	}
	return all
}

func (rt *Runtime) newTopic(t poller.Topic) *poller.Shared {
	return poller.NewShared(t, rt.env, rt.dead, rt.clock(t.Source.Shard()), rt.tail.Events != nil)
}

func (rt *Runtime) keep(t *poller.Shared) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.topics[t.Source.Name()] = t
}

func (rt *Runtime) forget(name string) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	delete(rt.topics, name)
	delete(rt.silent, name)
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

// Drain has the gateway refuse requests and answer those that it has, then
// takes no more leases, waits for the handlers that run until timeout has
// passed, then ends their contexts and releases what is left; OnDead may take as
// long. It names the timers whose handlers did not return. The runtime does nothing
// from then on; Stop ends it.
func (rt *Runtime) Drain(timeout time.Duration) (*messages.Drained, error) {
	until := time.Now().Add(timeout)
	bound := timeout + gatewayGrace + poller.DrainGrace + poller.DrainFlush + poller.HookGrace
	future := rt.system.Root.RequestFuture(rt.pid, &messages.Drain{Timeout: durationpb.New(timeout)}, bound)
	answer, err := future.Result()
	if err != nil {
		return nil, fmt.Errorf("drain: %w", err)
	}
	drained, ok := answer.(*messages.Drained)
	if !ok {
		return nil, fmt.Errorf("drain: unexpected answer %T", answer)
	}
	if soon := time.Now().Add(poller.HookGrace); until.Before(soon) {
		until = soon // what died while handlers ended is told too
	}
	rt.dead.End(until, poller.ErrDraining)
	return drained, nil
}

// extension keeps the runtimes of an ActorSystem.
type extension struct {
	mu       sync.Mutex
	runtimes map[string]*Runtime
}

var (
	extensionID    = extensions.NextExtensionID()
	extensionGuard sync.Mutex
)

func (*extension) ExtensionID() extensions.ExtensionID { return extensionID }

// extensionOf returns the system's extension, registered at first use.
func extensionOf(system *actor.ActorSystem) *extension {
	extensionGuard.Lock()
	defer extensionGuard.Unlock()
	if e, ok := system.Extensions.Get(extensionID).(*extension); ok {
		return e
	}
	e := &extension{runtimes: map[string]*Runtime{}}
	system.Extensions.Register(e)
	return e
}

func (e *extension) add(rt *Runtime) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, taken := e.runtimes[rt.name]; taken {
		return fmt.Errorf("%w: %q", ErrNameTaken, rt.name)
	}
	e.runtimes[rt.name] = rt
	return nil
}

// DefaultName is the default name of a runtime.
const DefaultName = "wakebell"

// NoAddress is the address of an ActorSystem that does not listen.
const NoAddress = "nonhost"

// Owner returns the Owner of the runtime of this name, while it runs.
func Owner(system *actor.ActorSystem, name string) (owner any, running bool) {
	e := extensionOf(system)
	e.mu.Lock()
	defer e.mu.Unlock()
	rt, running := e.runtimes[name]
	if !running {
		return nil, false
	}
	return rt.owner, true
}

// Owners returns the Owners of all runtimes of an ActorSystem that run, by their
// names.
func Owners(system *actor.ActorSystem) map[string]any {
	e := extensionOf(system)
	e.mu.Lock()
	defer e.mu.Unlock()
	owners := make(map[string]any, len(e.runtimes))
	for name, rt := range e.runtimes {
		owners[name] = rt.owner
	}
	return owners
}

func (e *extension) remove(rt *Runtime) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.runtimes, rt.name)
}
