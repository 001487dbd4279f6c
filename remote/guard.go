package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	premote "github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	gpeer "google.golang.org/grpc/peer"

	"github.com/wakebell/wakebell/internal/loglimit"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/limits"
)

// guard stands between peers and the actors of a system: it speaks the
// protocol of protoactor's remote, and nothing passes in or out without it.
type guard struct {
	cfg         settings
	system      *actor.ActorSystem
	log         *slog.Logger
	owners      atomic.Pointer[tokenOwners]
	rights      atomic.Pointer[Rights] // nil: everybody who is served may do all
	queues      *queueKeys
	peers       peers
	leases      *limits.Budget // of what subscribers hold
	filter      filter
	services    []func(grpc.ServiceRegistrar)
	connections *connections
	streams     *limits.Budget // of all connections
	bodies      *limits.Budget // bytes of messages
	dials       dials
	lines       loglimit.Limiter // of the log, about peers

	server   *grpc.Server
	listener net.Listener
	serving  sync.WaitGroup  // of the server
	closing  context.Context //nolint:containedctx // of the guard's own life
	close    context.CancelFunc

	mu      sync.Mutex // guards closed, and Add of running
	closed  bool
	running sync.WaitGroup // calls and links
}

// newGuard opens nothing yet.
func newGuard(system *actor.ActorSystem, cfg settings) *guard {
	g := &guard{
		cfg: cfg, system: system, log: cfg.Logger,
		peers:  peers{known: map[string]*peer{}, answers: limits.NewBudget(limits.Answers), mail: limits.NewBudget(limits.Mail), watches: limits.NewBudget(limits.Watches)},
		leases: limits.NewBudget(limits.Leases),
		filter: filter{
			addresses: map[string]bool{}, entries: map[string]*entry{}, celery: messages.CeleryQueues(cfg.CeleryQueues),
		},
	}
	g.peers.leases = g.leases
	g.know(owners(cfg.Tokens, cfg.TokenCertificates))
	g.rights.Store(cfg.Rights)
	g.peers.keep(cfg.Peers, cfg.Token)
	g.lines = loglimit.Limiter{Every: time.Minute, Each: limits.LogLines.Principal, Total: limits.LogLines.Total}
	g.streams = limits.NewBudget(limits.Streams)
	g.bodies = limits.NewBudget(limits.Messages(cfg.MaxMessage))
	g.dials = newDials()
	g.connections = newConnections(cfg)
	g.connections.refused = func(host string, err error) { g.complain(host, "", err) }
	g.connections.count = g.intakeOf
	//nolint:forbidigo // its life is its own: stop ends it
	g.closing, g.close = context.WithCancel(context.Background())
	for _, a := range cfg.Allow {
		g.filter.open(a.Actor, func(e *entry) {
			e.watch = e.watch || a.Watch
			for _, kind := range a.Messages {
				e.takes[kind] = a.Actor
			}
		})
	}
	return g
}

// ErrListening says that the ActorSystem is remote already: it has one address.
var ErrListening = errors.New("the actor system listens already")

// listen takes the address; serve lets peers in. It must come before any actor of the system that peers are to
// answer is spawned: one that runs already has no address.
func (g *guard) listen() (err error) {
	if g.system.Address() != unlistened {
		return ErrListening
	}
	host, port, err := hostPort(g.cfg.Address)
	if err != nil {
		return invalid("Address", "%v", err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("listen on %s: %w", g.cfg.Address, err)
	}
	address := g.cfg.Advertise
	if address == "" {
		address = listener.Addr().String()
	}
	g.system.ProcessRegistry.RegisterAddressResolver(g.resolve)
	g.system.ProcessRegistry.Address = address
	g.filter.addresses[address] = true
	g.server = grpc.NewServer(g.serverOptions()...)
	premote.RegisterRemotingServer(g.server, receiver{guard: g})
	for _, register := range g.services {
		register(g.server)
	}
	g.listener = listener
	return nil
}

// serve lets peers in.
func (g *guard) serve() {
	g.serving.Go(func() {
		if err := g.server.Serve(g.listener); err != nil && g.closing.Err() == nil {
			g.log.Error("the listener ended", "address", g.listener.Addr().String(), "err", err)
		}
	})
}

// unlistened is the address of a system before it listens.
const unlistened = "nonhost"

// enter counts a call or a link that begins; false: none may any more.
func (g *guard) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.running.Add(1)
	}
	return !g.closed
}

// stop ends all calls and links, and listens no more.
func (g *guard) stop() {
	g.mu.Lock()
	again := g.closed
	g.closed = true
	g.mu.Unlock()
	if again {
		return
	}
	g.close()
	g.connections.closeAll()
	g.server.Stop()
	_ = g.listener.Close() // it is, if it has been served
	g.running.Wait()
	g.serving.Wait()
}

// note writes down what a peer has done that it should not have.
func (g *guard) note(ctx context.Context, w who, err error, more ...any) {
	g.complain(w.host, w.owner, err, more...)
}

// refused writes down a call without credentials.
func (g *guard) refused(ctx context.Context, err error) {
	host := ""
	if p, ok := gpeer.FromContext(ctx); ok {
		host = hostOf(p.Addr)
	}
	g.complain(host, "", err)
}

// complain writes down what a host or an owner has done: of each one line a
// minute, with how many there were since the one before, and of all a bounded
// number.
func (g *guard) complain(host, owner string, err error, more ...any) {
	if skipped, ok := g.lines.Allow(host + "\x00" + owner); ok && g.closing.Err() == nil {
		g.log.Warn("a peer was refused", append([]any{"host", host, "owner", owner, "err", err.Error(), "skipped", skipped}, more...)...)
	}
}
