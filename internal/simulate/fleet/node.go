package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/testhook"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/reminder"
	"github.com/wakebell/wakebell/remote"
)

const (
	// leaseTTL is the lease of timers, messages and turns: short, so that faults outlast it.
	leaseTTL = 4 * time.Second
	// retryLimit is the longest backoff of timers and reminders.
	retryLimit = 4 * time.Second
	// secret is the token of the clients.
	secret = "a-secret-of-sixteen-bytes"
)

// The topics of a fleet: jobs are handled by the nodes, orders and the messages of mail by
// remote subscribers and claims over HTTP, parcels by these claims alone.
const (
	jobs    = "jobs"
	orders  = "orders"
	parcels = "parcels"
	mail    = "mail"
)

// topics are the topics of timers.
var topics = []string{jobs, orders, parcels}

var quiet = slog.New(slog.DiscardHandler)

// node is a process that serves a System. It has the same address after a restart.
type node struct {
	fleet   *fleet
	number  int
	host    netip.Addr
	changes chan struct{} // has an element while the node starts or ends

	mu  sync.Mutex
	run *incarnation // nil: it does not run
}

// incarnation is a node from a start to its end.
type incarnation struct {
	rdb    *redis.Client
	sys    *wakebell.System
	server *remote.Server
	relay  stopper // of the outbox; nil: there is none
}

type stopper interface {
	Stop(ctx context.Context) error
}

func newNode(f *fleet, number int) *node {
	return &node{
		fleet: f, number: number, host: netip.AddrFrom4([4]byte{10, 0, 0, byte(number + 1)}), //nolint:gosec // there are few
		changes: make(chan struct{}, 1),
	}
}

func (n *node) name() string    { return fmt.Sprintf("node-%d", n.number) }
func (n *node) address() string { return netip.AddrPortFrom(n.host, 7000).String() }
func (n *node) web() string     { return netip.AddrPortFrom(n.host, 8080).String() }

// running returns the incarnation that runs, or nil.
func (n *node) running() *incarnation {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.run
}

func (n *node) become(run *incarnation) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.run = run
}

// start starts the node, unless it runs. It waits for Redis.
func (n *node) start() error {
	n.changes <- struct{}{}
	defer func() { <-n.changes }()
	if n.running() != nil {
		return nil
	}
	n.fleet.net.revive(n.host)
	run, err := n.launch()
	if err != nil {
		return err
	}
	n.become(run)
	return run.sys.Start(n.fleet.ctx)
}

func (n *node) launch() (*incarnation, error) {
	run := &incarnation{rdb: n.fleet.store.client(n.host)}
	conn, err := connection.New(run.rdb, connection.Config{Logger: quiet})
	if err != nil {
		return nil, err
	}
	actors := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }))
	if run.sys, err = wakebell.New(actors, conn, n.config()); err != nil {
		return nil, err
	}
	served := remote.Config{
		Address: n.address(), HTTPAddress: n.web(), Tokens: map[string]string{secret: "clients"}, Insecure: true,
		HandlerOptions: n.fleet.plan.topicOptions(), QueueHandlerOptions: queueOptions(),
	}
	for i := range n.fleet.plan.Nodes {
		if i != n.number {
			served.Peers = append(served.Peers, newNode(n.fleet, i).address())
		}
	}
	for i := range carts {
		served.Allow = append(served.Allow, remote.Allow{Actor: cartName(i), Messages: []string{"wakebell.v1.Reminder"}})
	}
	testhook.Connect(&served, n.fleet.net.of(n.host))
	if run.server, err = remote.Serve(run.sys, served); err != nil {
		return nil, err
	}
	if err := n.fleet.spawnCarts(n, actors); err != nil {
		return nil, err
	}
	if box := n.fleet.plan.Outbox; box != nil {
		run.relay, err = box.relay(run.sys)
	}
	return run, err
}

func (n *node) config() wakebell.Config {
	handler := func(ctx context.Context, t wakebell.Timer[string]) error {
		parts, err := partsOf(ctx, t)
		if err != nil {
			return err // Redis may be away
		}
		if parts != nil {
			n.fleet.record.ends.note(t.Body, parts)
		}
		return n.fleet.handle(ctx, subjectOf(jobs, t.ID), t.Body, t.Attempt, n.name(), "", "")
	}
	tick := func(ctx context.Context, t wakebell.Timer[string]) error {
		number, _ := t.Headers.Get("wakebell-run")
		return n.fleet.handle(ctx, subjectOf(ticks, t.ID), t.Body, t.Attempt, n.name(), number, "")
	}
	return wakebell.Config{
		Handlers: []wakebell.Handler{
			wakebell.Handle(wakebell.NewTopic[string](jobs), handler, n.fleet.plan.topicOptions()...),
			wakebell.Handle(wakebell.NewTopic[string](ticks), tick, n.fleet.plan.topicOptions()...),
		},
		Scheduler: &recurring.SchedulerConfig{},
		Reminders: &reminder.Config{
			Node: n.name(), AckTimeout: ackTimeout, RetryInitial: time.Second, RetryLimit: retryLimit, MaxAttempts: unlimited,
		},
		DrainTimeout: time.Second, WaitForRedis: time.Hour, Gates: gate.Config{LeaseTTL: leaseTTL},
	}
}

// unlimited is a number of attempts that is never reached.
const unlimited = 100_000

// topicOptions are the options of both topics.
func (p *Plan) topicOptions() []wakebell.HandlerOption {
	o := []wakebell.HandlerOption{
		wakebell.LeaseTTL(leaseTTL), wakebell.RetryBackoff(time.Second, retryLimit), wakebell.MaxAttempts(unlimited),
	}
	if p.Keys {
		o = append(o, wakebell.PerKey(1), wakebell.KeyRun(int(p.Seed%2)*3))
	}
	return o
}

func queueOptions() []wakebell.QueueHandlerOption {
	return []wakebell.QueueHandlerOption{wakebell.LeaseTTL(leaseTTL), wakebell.RetryBackoff(time.Second, retryLimit), wakebell.MaxAttempts(unlimited)}
}

// crash ends the node like the death of its process.
func (n *node) crash() {
	n.changes <- struct{}{}
	defer func() { <-n.changes }()
	run := n.running()
	if run == nil {
		return
	}
	n.become(nil)
	n.fleet.net.kill(n.host)
	n.fleet.check(testhook.Kill(run.sys), "kill a node")
	n.end(run)
}

// drain stops the node as a deployment does.
func (n *node) drain() {
	n.changes <- struct{}{}
	defer func() { <-n.changes }()
	run := n.running()
	if run == nil {
		return
	}
	n.become(nil)
	if run.relay != nil {
		within, cancel := context.WithTimeout(n.fleet.ctx, leaseTTL)
		_ = run.relay.Stop(within) // Redis may be away; the next relay continues
		run.relay = nil
		cancel()
	}
	if err := run.sys.Stop(); !errors.Is(err, wakebell.ErrUnfinished) {
		n.fleet.check(err, "stop a node")
	}
	n.end(run)
	n.fleet.net.leave(n.host)
}

// end ends what is left of an incarnation whose System has stopped.
func (n *node) end(run *incarnation) {
	if run.relay != nil {
		over, cancel := context.WithCancel(n.fleet.ctx)
		cancel()
		_ = run.relay.Stop(over) // its process is dead
	}
	run.server.Stop()
	n.fleet.check(run.rdb.Close(), "close the connection of a node")
}
