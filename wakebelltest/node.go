package wakebelltest

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/internal/testhook"
)

// Node is a System in a world, with an ActorSystem of its own. It may be
// started again after it ended, which makes a new System of the same Config.
type Node struct {
	world   *World
	number  int // from 1
	cfg     wakebell.Config
	running bool

	mu     sync.Mutex // guards what follows, which a poller's start may touch
	system *wakebell.System
	topics []string // full names of those it handles, or handled
}

// Start starts one more node in the world.
func (w *World) Start(cfg wakebell.Config) *Node {
	w.t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = w.logger
	}
	n := &Node{world: w, number: len(w.nodes) + 1, cfg: cfg}
	w.nodes = append(w.nodes, n)
	n.Start()
	return n
}

// Nodes are the nodes of the world in the order in which they were first
// started, that of Run's Config being the first.
func (w *World) Nodes() []*Node { return w.nodes }

// Crash ends all nodes as Node.Crash does. Redis and its timers survive.
func (w *World) Crash() {
	w.t.Helper()
	for _, n := range w.nodes {
		n.Crash()
	}
}

// Restart stops the nodes that run, as a deployment would, and starts all
// anew. Handlers that run are waited for, at most DrainTimeout of virtual time.
func (w *World) Restart() {
	w.t.Helper()
	for _, n := range w.nodes {
		if err := n.Stop(); err != nil {
			w.t.Errorf("wakebelltest: restart: stop node %d: %v", n.number, err)
		}
		n.Start()
	}
}

// Start starts the node again after Stop or Crash. What is due is delivered by
// the next Advance.
func (n *Node) Start() {
	w := n.world
	w.t.Helper()
	if n.running {
		return
	}
	cfg := n.cfg
	cfg.Middleware = append([]wakebell.Middleware{w.history.middleware(n)}, cfg.Middleware...)
	system, err := wakebell.New(newActorSystem(cfg.Logger), w.rdb, cfg)
	if err != nil {
		w.t.Fatalf("wakebelltest: node %d: %v", n.number, err)
	}
	n.mu.Lock()
	n.system, n.topics = system, nil
	n.mu.Unlock()
	testhook.Hook(system, testhook.Hooks{
		Source: n.wire,
		Random: func() float64 { return 0.5 },
		Idle:   time.Hour,
	})
	if err := system.Start(w.background()); err != nil {
		w.t.Fatalf("wakebelltest: node %d: %v", n.number, err)
	}
	n.running = true
	synctest.Wait() // it hears the hints now
}

func newActorSystem(logger *slog.Logger) *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }))
}

// Stop drains and stops the node as System.Stop does, and returns its error.
// Handlers that run are waited for in virtual time. Stopping a node that does
// not run is fine.
func (n *Node) Stop() error {
	if !n.running {
		return nil
	}
	n.running = false
	return n.System().Stop()
}

// Crash ends the node at once, as if its process had died: what its handlers
// decide from now on is not written, and their timers come back when their
// leases end. A goroutine cannot be killed, so handlers that run have their
// contexts ended, with wakebell.ErrStopped, and go on if they pay no heed.
func (n *Node) Crash() {
	n.world.t.Helper()
	if !n.running {
		return
	}
	n.running = false
	if err := testhook.Kill(n.System()); err != nil {
		n.world.t.Errorf("wakebelltest: crash node %d: %v", n.number, err)
	}
	n.world.history.crashed(n)
}

// System is the System that runs, or ran last, on the node.
func (n *Node) System() *wakebell.System {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.system
}

// wire makes the node record what passes between a topic's poller and Redis.
func (n *Node) wire(source poller.Source) poller.Source {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.topics = append(n.topics, source.Name())
	return &wire{Source: source, node: n, topic: strings.TrimPrefix(source.Name(), n.cfg.Prefix)}
}

// behind says whether a timer is due that the node may take.
func (n *Node) behind() bool {
	n.mu.Lock()
	topics, system := slices.Clone(n.topics), n.system
	n.mu.Unlock()
	for _, full := range topics {
		topic := strings.TrimPrefix(full, n.cfg.Prefix)
		stats, err := system.Client().Stats(n.world.background(), topic)
		if err == nil && stats.Due > 0 && !stats.Paused {
			return true
		}
	}
	return false
}
