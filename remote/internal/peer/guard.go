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

// Guard mediates between peers and the actors of a system: it implements the
// protocol of protoactor's remote and checks every message in both directions.
type Guard struct {
	Cfg           Settings
	system        *actor.ActorSystem
	Log           *slog.Logger
	owners        atomic.Pointer[access.TokenOwners]
	principals    atomic.Pointer[map[string]bool] // that have tokens
	Rights        atomic.Pointer[rights.Grants]   // nil: every admitted caller may do everything
	Queues        *access.QueueKeys
	Reminders     *access.ReminderTopics
	Peers         peers
	Leases        *limits.Budget // leases that subscribers hold
	WaitingLeases *limits.Budget // leases that wait for a subscriber
	Filter        filter
	Router        string // id of the router of subscriptions; set before Serve
	Services      []func(grpc.ServiceRegistrar)
	CarryOut      grpc.UnaryServerInterceptor // interceptor of the services
	Connections   *conn.Connections
	Web           *conn.Connections // of HTTP
	webAnswers    *limits.Budget    // bytes of answers over HTTP
	streams       *limits.Budget    // of all connections
	bodies        *limits.Budget    // bytes of messages
	dials         dials
	Lines         loglimit.Limiter // of the log, about peers

	server   *grpc.Server
	listener net.Listener
	serving  sync.WaitGroup  // of the server
	Closing  context.Context //nolint:containedctx // ends with Stop
	Close    context.CancelFunc

	mu      sync.Mutex // guards closed, and Add of running
	closed  bool
	Running sync.WaitGroup // calls and links
}

// NewGuard returns a Guard that does not listen yet.
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
	g.webAnswers = limits.NewBudget(answersOfHTTP())
	g.bodies = limits.NewBudget(limits.Messages(cfg.MaxMessage))
	g.dials = newDials()
	g.Connections = conn.NewConnections(cfg.MaxConnections, cfg.TLS)
	g.Connections.Refused = func(host string, err error) { g.logRefusal(host, "", err) }
	g.Web = g.Connections.Beside()
	g.Connections.Count = g.intakeOf
	//nolint:forbidigo // ended by Stop
	g.Closing, g.Close = context.WithCancel(context.Background())
	g.Measure(g.Peers.Answers, g.Peers.mail, g.Peers.watches, g.Leases, g.WaitingLeases, g.streams, g.bodies, g.webAnswers)
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

// Measure counts how often the bound of a budget is reached.
func (g *Guard) Measure(budgets ...*limits.Budget) {
	for _, b := range budgets {
		b.Full = func(name string) { g.Cfg.Metrics.BackPressure(g.Closing, name) }
	}
}

// ErrListening is the error if the ActorSystem already has a remote address. It has
// only one.
var ErrListening = errors.New("the actor system is already listening")

// Listen opens the listener; Serve accepts peers. Call Listen before spawning any
// actor that peers address: an actor that is already running has no address.
func (g *Guard) Listen() (err error) {
	if g.system.Address() != unlistened {
		return ErrListening
	}
	host, port, err := wire.HostPort(g.Cfg.Address)
	if err != nil {
		return argument.Invalid("Address", "%v", err)
	}
	listener, err := g.Cfg.listen(net.JoinHostPort(host, strconv.Itoa(port)))
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

// Serve accepts peers.
func (g *Guard) Serve() {
	g.serving.Go(func() {
		if err := g.server.Serve(g.listener); err != nil && g.Closing.Err() == nil {
			g.Log.Error("the listener ended", "address", g.listener.Addr().String(), "err", err)
		}
	})
}

// unlistened is the address of a system that does not listen.
const unlistened = "nonhost"

// Enter counts a call or link that begins. It returns false after Stop. The caller
// calls Running.Done at its end.
func (g *Guard) Enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.Running.Add(1)
	}
	return !g.closed
}

// Stop ends all calls and links, and closes the listener.
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
	g.Web.CloseAll()
	g.server.Stop()
	_ = g.listener.Close() // already closed if Serve was called
	g.Running.Wait()
	g.serving.Wait()
}

// Note logs what the Guard refused from a caller.
func (g *Guard) Note(ctx context.Context, w Caller, err error, more ...any) {
	g.logRefusal(w.host, w.Owner, err, more...)
}

// refused logs a call without credentials.
func (g *Guard) refused(ctx context.Context, err error) {
	host := ""
	if p, ok := gpeer.FromContext(ctx); ok {
		host = conn.HostOf(p.Addr)
	}
	g.logRefusal(host, "", err)
}

// logRefusal logs a refusal: one line a minute per host and owner, with the number
// of skipped lines, and a bounded number of lines in total.
func (g *Guard) logRefusal(host, owner string, err error, more ...any) {
	g.Cfg.Metrics.FrameRejected(g.Closing)
	if skipped, ok := g.Lines.Allow(host + "\x00" + owner); ok && g.Closing.Err() == nil {
		g.Log.Warn("a peer was refused", append([]any{"host", host, "owner", owner, "err", err.Error(), "skipped", skipped}, more...)...)
	}
}
