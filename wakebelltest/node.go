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
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/internal/testhook"
)

// Node is a System in a World, with its own ActorSystem. Starting it again after
// Stop or Crash makes a new System with the same configuration.
type Node struct {
	world   *World
	number  int // from 1
	conn    connection.Config
	cfg     wakebell.Config
	running bool

	mu     sync.Mutex // guards system and topics, which the start of a poller changes
	system *wakebell.System
	topics []string // full names of the topics that the System has handled
}

// Start adds a node to the World and starts it.
func (w *World) Start(cfg wakebell.Config) *Node {
	w.t.Helper()
	return w.StartWith(w.conn, cfg)
}

// StartWith is Start for a node whose Connection has this configuration, in place of that
// of RunWith or NewWith.
func (w *World) StartWith(conn connection.Config, cfg wakebell.Config) *Node {
	w.t.Helper()
	if conn.Logger == nil {
		conn.Logger = w.conn.Logger
	}
	n := &Node{world: w, number: len(w.nodes) + 1, conn: conn, cfg: cfg}
	w.nodes = append(w.nodes, n)
	n.Start()
	return n
}

// Nodes returns the nodes of the World in the order of their first start; the node
// of Run's Config is the first.
func (w *World) Nodes() []*Node { return w.nodes }

// Crash ends all nodes as Node.Crash does. Redis and its timers survive.
func (w *World) Crash() {
	w.t.Helper()
	for _, n := range w.nodes {
		n.Crash()
	}
}

// Restart stops the running nodes, as a deployment does, and starts all nodes.
// It waits for running handlers, at most DrainTimeout of virtual time.
func (w *World) Restart() {
	w.t.Helper()
	for _, n := range w.nodes {
		if err := n.Stop(); err != nil {
			w.t.Errorf("wakebelltest: restart: stop node %d: %v", n.number, err)
		}
		n.Start()
	}
}

// Start starts the node again after Stop or Crash. The next Advance delivers the
// timers that are due.
func (n *Node) Start() {
	w := n.world
	w.t.Helper()
	if n.running {
		return
	}
	cfg := n.cfg
	if len(cfg.Middleware) == 0 || cfg.BatchMiddleware != nil { // otherwise New refuses handlers of batches
		cfg.BatchMiddleware = append([]wakebell.BatchMiddleware{w.history.batchMiddleware(n)}, cfg.BatchMiddleware...)
	}
	cfg.Middleware = append([]wakebell.Middleware{w.history.middleware(n)}, cfg.Middleware...)
	conn, err := connection.New(w.rdb, n.conn)
	if err != nil {
		w.t.Fatalf("wakebelltest: node %d: %v", n.number, err)
	}
	system, err := wakebell.New(newActorSystem(n.conn.Logger), conn, cfg)
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
		// A timer could be running before it is due, and acks wait for others.
		NoWindow: true,
	})
	if err := system.Start(w.background()); err != nil {
		w.t.Fatalf("wakebelltest: node %d: %v", n.number, err)
	}
	n.running = true
	synctest.Wait() // until it has subscribed to hints
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

// Crash ends the node at once, like the death of its process: verdicts of its
// handlers are no longer written, and their timers are delivered again when their
// leases expire. The contexts of running handlers are cancelled with the cause
// wakebell.ErrStopped, because goroutines cannot be killed.
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

// System returns the System that runs on the node, or ran last.
func (n *Node) System() *wakebell.System {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.system
}

// wire records the exchanges between the poller of a topic and Redis.
func (n *Node) wire(source poller.Source) poller.Source {
	n.mu.Lock()
	defer n.mu.Unlock()
	full := sharding.Topic(source.Name())
	if !slices.Contains(n.topics, full) {
		n.topics = append(n.topics, full)
	}
	return &wire{Source: source, node: n, topic: strings.TrimPrefix(full, n.conn.Prefix)}
}

// behind reports whether a timer is due that the node may claim.
func (n *Node) behind() bool {
	n.mu.Lock()
	topics, system := slices.Clone(n.topics), n.system
	n.mu.Unlock()
	for _, full := range topics {
		topic := strings.TrimPrefix(full, n.conn.Prefix)
		stats, err := system.Client().Stats(n.world.background(), topic)
		if err == nil && stats.Due > 0 && !stats.Paused {
			return true
		}
	}
	return false
}
