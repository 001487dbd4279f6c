package peer

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

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/loglimit"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/access"
	"github.com/wakebell/wakebell/remote/internal/conn"
	"github.com/wakebell/wakebell/remote/internal/limits"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/remote/rights"
)

// Guard stands between peers and the actors of a system: it speaks the
// protocol of protoactor's remote, and nothing passes in or out without it.
type Guard struct {
	Cfg           Settings
	system        *actor.ActorSystem
	Log           *slog.Logger
	owners        atomic.Pointer[access.TokenOwners]
	Rights        atomic.Pointer[rights.Grants] // nil: everybody who is served may do all
	Queues        *access.QueueKeys
	Peers         peers
	Leases        *limits.Budget // of what subscribers hold
	WaitingLeases *limits.Budget // of leases that wait for a subscriber
	Filter        filter
	Services      []func(grpc.ServiceRegistrar)
	CarryOut      grpc.UnaryServerInterceptor // of the services
	Connections   *conn.Connections
	streams       *limits.Budget // of all connections
	bodies        *limits.Budget // bytes of messages
	dials         dials
	Lines         loglimit.Limiter // of the log, about peers

	server   *grpc.Server
	listener net.Listener
	serving  sync.WaitGroup  // of the server
	Closing  context.Context //nolint:containedctx // of the guard's own life
	Close    context.CancelFunc

	mu      sync.Mutex // guards closed, and Add of running
	closed  bool
	Running sync.WaitGroup // calls and links
}

// NewGuard opens nothing yet.
func NewGuard(system *actor.ActorSystem, cfg Settings) *Guard {
	g := &Guard{
		Cfg: cfg, system: system, Log: cfg.Logger,
		Peers:  peers{known: map[string]*peer{}, Answers: limits.NewBudget(limits.Answers), mail: limits.NewBudget(limits.Mail), watches: limits.NewBudget(limits.Watches)},
		Leases: limits.NewBudget(limits.Leases), WaitingLeases: limits.NewBudget(limits.WaitingLeases),
		Filter: filter{
			addresses: map[string]bool{}, entries: map[string]*Entry{}, celery: messages.CeleryQueues(cfg.CeleryQueues),
		},
	}
	g.Peers.leases = g.Leases
	g.setOwners(access.Owners(cfg.Tokens, cfg.TokenCertificates))
	g.Rights.Store(cfg.Rights)
	g.Peers.addConfigured(cfg.Peers, cfg.Token)
	g.Lines = loglimit.Limiter{Every: time.Minute, Each: limits.LogLines.Principal, Total: limits.LogLines.Total}
	g.streams = limits.NewBudget(limits.Streams)
	g.bodies = limits.NewBudget(limits.Messages(cfg.MaxMessage))
	g.dials = newDials()
	g.Connections = conn.NewConnections(cfg.MaxConnections, cfg.TLS)
	g.Connections.Refused = func(host string, err error) { g.logRefusal(host, "", err) }
	g.Connections.Count = g.intakeOf
	//nolint:forbidigo // its life is its own: stop ends it
	g.Closing, g.Close = context.WithCancel(context.Background())
	for _, a := range cfg.Allow {
		g.Filter.Open(a.Actor, func(e *Entry) {
			e.Watch = e.Watch || a.Watch
			for _, kind := range a.Messages {
				e.Takes[kind] = a.Actor
			}
		})
	}
	return g
}

// ErrListening says that the ActorSystem is remote already: it has one address.
var ErrListening = errors.New("the actor system listens already")

// Listen takes the address; serve lets peers in. It must come before any actor of the system that peers are to
// answer is spawned: one that runs already has no address.
func (g *Guard) Listen() (err error) {
	if g.system.Address() != unlistened {
		return ErrListening
	}
	host, port, err := wire.HostPort(g.Cfg.Address)
	if err != nil {
		return argument.Invalid("Address", "%v", err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("listen on %s: %w", g.Cfg.Address, err)
	}
	address := g.Cfg.Advertise
	if address == "" {
		address = listener.Addr().String()
	}
	g.system.ProcessRegistry.RegisterAddressResolver(g.resolve)
	g.system.ProcessRegistry.Address = address
	g.Filter.addresses[address] = true
	g.server = grpc.NewServer(g.serverOptions()...)
	premote.RegisterRemotingServer(g.server, receiver{guard: g})
	for _, register := range g.Services {
		register(g.server)
	}
	g.listener = listener
	return nil
}

// Serve lets peers in.
func (g *Guard) Serve() {
	g.serving.Go(func() {
		if err := g.server.Serve(g.listener); err != nil && g.Closing.Err() == nil {
			g.Log.Error("the listener ended", "address", g.listener.Addr().String(), "err", err)
		}
	})
}

// unlistened is the address of a system before it listens.
const unlistened = "nonhost"

// Enter counts a call or a link that begins; false: none may any more.
func (g *Guard) Enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.Running.Add(1)
	}
	return !g.closed
}

// Stop ends all calls and links, and listens no more.
func (g *Guard) Stop() {
	g.mu.Lock()
	again := g.closed
	g.closed = true
	g.mu.Unlock()
	if again {
		return
	}
	g.Close()
	g.Connections.CloseAll()
	g.server.Stop()
	_ = g.listener.Close() // it is, if it has been served
	g.Running.Wait()
	g.serving.Wait()
}

// Note writes down what a peer has done that it should not have.
func (g *Guard) Note(ctx context.Context, w Caller, err error, more ...any) {
	g.logRefusal(w.host, w.Owner, err, more...)
}

// refused writes down a call without credentials.
func (g *Guard) refused(ctx context.Context, err error) {
	host := ""
	if p, ok := gpeer.FromContext(ctx); ok {
		host = conn.HostOf(p.Addr)
	}
	g.logRefusal(host, "", err)
}

// complain writes down what a host or an owner has done: of each one line a
// minute, with how many there were since the one before, and of all a bounded
// number.
func (g *Guard) logRefusal(host, owner string, err error, more ...any) {
	if skipped, ok := g.Lines.Allow(host + "\x00" + owner); ok && g.Closing.Err() == nil {
		g.Log.Warn("a peer was refused", append([]any{"host", host, "owner", owner, "err", err.Error(), "skipped", skipped}, more...)...)
	}
}
