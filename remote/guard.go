package remote

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	premote "github.com/asynkron/protoactor-go/remote"
	gpeer "google.golang.org/grpc/peer"
)

// guard stands between peers and the actors of a system: it starts
// protoactor's remote, and nothing passes in or out without it.
type guard struct {
	cfg         Config
	system      *actor.ActorSystem
	log         *slog.Logger
	owners      map[[sha256.Size]byte]string
	peers       peers
	filter      filter
	services    services
	connections *counted
	complaints  complaints

	remote  *premote.Remote
	ready   chan struct{}   // closed when it is known where we are
	closing context.Context //nolint:containedctx // of the guard's own life
	close   context.CancelFunc

	mu      sync.Mutex // guards closed, and Add of running
	closed  bool
	running sync.WaitGroup // calls
}

// newGuard checks the configuration; it opens nothing yet.
func newGuard(system *actor.ActorSystem, cfg Config) (*guard, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	g := &guard{
		cfg: cfg, system: system, log: cfg.Logger, owners: owners(cfg.Tokens),
		peers:  peers{known: map[string]*peer{}},
		filter: filter{addresses: map[string]bool{}, entries: map[string]*entry{}},
		ready:  make(chan struct{}),
	}
	g.complaints.log = cfg.Logger
	g.connections = &counted{
		TransportCredentials: transport(cfg), limit: cfg.MaxConnections,
		refused: func(from net.Addr) { g.complaints.note(hostOf(from), "", errTooManyConnections) },
		conns:   map[*countedConn]struct{}{},
	}
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
	return g, nil
}

// ErrListening says that the ActorSystem is remote already: protoactor listens
// once.
var ErrListening = errors.New("the actor system listens already")

const (
	// protoactor's queues grow as they need; these are what they begin with.
	queueSize = 1024
	// batchSize bounds the messages that it sends in one frame.
	batchSize = 1000
)

// start listens. It must come before any actor of the system that peers are to
// answer is spawned: one that runs already has no address.
func (g *guard) start() (err error) {
	if g.system.Address() != unlistened {
		return ErrListening
	}
	host, port, err := hostPort(g.cfg.Address)
	if err != nil {
		return invalid("Address", "%v", err)
	}
	if ip := net.ParseIP(host); ip != nil && ip.To4() == nil {
		host = "[" + host + "]"
	}
	config := premote.Configure(host, port,
		premote.WithServerOptions(g.serverOptions()...),
		premote.WithDialOptions(g.dialOptions()...),
		premote.WithAdvertisedHost(g.cfg.Advertise),
		premote.WithEndpointWriterQueueSize(queueSize),
		premote.WithEndpointManagerQueueSize(queueSize),
		premote.WithEndpointWriterBatchSize(batchSize),
	)
	config.MaxRetryCount = 1 // it forgets to close the connection of a try before
	g.remote = premote.NewRemote(g.system, config)
	defer func() {
		if reason := recover(); reason != nil { // its way to say that it cannot listen
			err = fmt.Errorf("listen on %s: %v", g.cfg.Address, reason)
		}
	}()
	g.remote.Start()
	g.filter.addresses[g.system.Address()] = true
	close(g.ready)
	return nil
}

// unlistened is the address of a system before it listens.
const unlistened = "nonhost"

// enter counts a call that begins; false: none may any more.
func (g *guard) enter() bool {
	select {
	case <-g.ready:
	case <-g.closing.Done():
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.running.Add(1)
	}
	return !g.closed
}

// stop ends all calls and then protoactor's remote.
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
	g.running.Wait()
	<-time.After(settleDown)
	g.shutdown()
}

// settleDown is for goroutines of protoactor's that follow the end of a call:
// its Shutdown races with them, and there is nothing to wait for.
const settleDown = 100 * time.Millisecond

// shutdown ends protoactor's remote, which panics when it meets such a
// goroutine: then its actors have stopped, and what is left is its server.
func (g *guard) shutdown() {
	defer func() {
		if recover() != nil {
			g.remote.Shutdown(false)
		}
	}()
	g.remote.Shutdown(true)
}

// note writes down what a peer has done that it should not have.
func (g *guard) note(ctx context.Context, w who, err error, more ...any) {
	if g.closing.Err() == nil {
		g.complaints.note(w.host, w.owner, err, more...)
	}
}

// refused writes down a call without credentials.
func (g *guard) refused(ctx context.Context, err error) {
	host := ""
	if p, ok := gpeer.FromContext(ctx); ok {
		host = hostOf(p.Addr)
	}
	g.complaints.note(host, "", err)
}

const (
	complainEvery = time.Minute
	maxComplained = 1024 // hosts that are remembered
)

// complaints are what is logged of peers: of each host one line a minute, with
// how many there were since the one before, whatever a peer does.
type complaints struct {
	log *slog.Logger

	mu    sync.Mutex
	hosts map[string]*complaint
}

type complaint struct {
	again   time.Time
	skipped int
}

func (c *complaints) note(host, owner string, err error, more ...any) {
	c.mu.Lock()
	now := time.Now()
	if len(c.hosts) >= maxComplained {
		for host, old := range c.hosts {
			if !now.Before(old.again) {
				delete(c.hosts, host)
			}
		}
		if c.hosts[host] == nil && len(c.hosts) >= maxComplained {
			host = "" // those that do not fit have one line among them
		}
	}
	of := c.hosts[host]
	if of == nil {
		if c.hosts == nil {
			c.hosts = map[string]*complaint{}
		}
		of = &complaint{}
		c.hosts[host] = of
	}
	if now.Before(of.again) {
		of.skipped++
		c.mu.Unlock()
		return
	}
	skipped := of.skipped
	of.again, of.skipped = now.Add(complainEvery), 0
	c.mu.Unlock()
	c.log.Warn("a peer was refused", append([]any{"host", host, "owner", owner, "err", err.Error(), "skipped", skipped}, more...)...)
}
