package fleet

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/wakebell/wakebell/internal/testhook"
)

// network connects the processes of a fleet in memory: sockets do not work in virtual time.
// Each process has a host of its own, and each direction between two hosts is a path that can
// be slow or silent.
type network struct {
	mu        sync.Mutex
	listeners map[netip.AddrPort]*listener
	conns     map[*conn]bool // both ends of each
	paths     map[[2]netip.Addr]*path
	quick     map[netip.Addr]bool // hosts to which and from which nothing takes time
	dead      map[netip.Addr]bool
	apart     map[[2]netip.Addr]int // pairs of hosts whose dials fail
	ports     uint16
}

func newNetwork() *network {
	return &network{
		listeners: map[netip.AddrPort]*listener{}, conns: map[*conn]bool{},
		paths: map[[2]netip.Addr]*path{}, quick: map[netip.Addr]bool{}, dead: map[netip.Addr]bool{}, apart: map[[2]netip.Addr]int{}, ports: 20000,
	}
}

// path is one direction between two hosts. Faults overlap: it is silent while one of them says so.
type path struct {
	mu     sync.Mutex
	least  time.Duration // how long bytes are on their way at least
	delay  time.Duration // the rest of that time
	silent int
	change chan struct{} // closed when it becomes silent, or speaks again
}

func (p *path) latency() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.least + p.delay
}

// isSilent reports whether no bytes arrive, and returns what is closed when that may change.
func (p *path) isSilent() (bool, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.silent > 0, p.change
}

func (p *path) silence(begins bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent--; begins {
		p.silent += 2
	}
	close(p.change)
	p.change = make(chan struct{})
}

// slow sets for how much longer bytes are on their way.
func (p *path) slow(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// path returns the path between two hosts.
func (n *network) path(from, to netip.Addr) *path {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.paths[[2]netip.Addr{from, to}]
	if p == nil {
		p = &path{change: make(chan struct{}), least: usual}
		if n.quick[from] || n.quick[to] {
			p.least = 0
		}
		n.paths[[2]netip.Addr{from, to}] = p
	}
	return p
}

// usual is how long bytes are on their way between clients and nodes.
const usual = 200 * time.Microsecond

// separate breaks the connections between two hosts, and refuses new ones until they are joined.
func (n *network) separate(one, other netip.Addr) (join func()) {
	pair := [2]netip.Addr{one, other}
	n.mu.Lock()
	n.apart[pair]++
	n.mu.Unlock()
	n.reset(one, other)
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.apart[pair]--
	}
}

// leave ends what a process that has closed its connections still has in the network. What it sent
// before arrives.
func (n *network) leave(host netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dead[host] = true
}

// kill ends all that a process has in the network, like its death: nothing that it does
// afterwards arrives anywhere, until revive is called for its next incarnation.
func (n *network) kill(host netip.Addr) {
	n.mu.Lock()
	n.dead[host] = true
	var listeners []*listener
	for at, l := range n.listeners {
		if at.Addr() == host {
			listeners = append(listeners, l)
		}
	}
	var ends []*conn
	for c := range n.conns {
		if hostOf(c.near) == host {
			ends = append(ends, c)
		}
	}
	n.mu.Unlock()
	for _, l := range listeners {
		_ = l.Close() // it returns nil
	}
	for _, c := range ends {
		c.shut(syscall.ECONNRESET)
	}
}

func (n *network) revive(host netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.dead, host)
}

// reset breaks the connections between two hosts, or all of a host if the other is zero.
func (n *network) reset(one, other netip.Addr) {
	n.mu.Lock()
	var broken []*conn
	for c := range n.conns {
		near, away := hostOf(c.near), hostOf(c.away)
		if near == one && (away == other || other == netip.Addr{}) || away == one && near == other {
			broken = append(broken, c)
		}
	}
	n.mu.Unlock()
	for _, c := range broken {
		c.reset()
	}
}

func hostOf(a net.Addr) netip.Addr { return a.(*net.TCPAddr).AddrPort().Addr() }

// of returns the network as a host sees it.
func (n *network) of(host netip.Addr) testhook.Network {
	return testhook.Network{
		Listen: func(_, address string) (net.Listener, error) { return n.listen(address) },
		Dial: func(ctx context.Context, _, address string) (net.Conn, error) {
			return n.dial(ctx, host, address)
		},
	}
}

// listen listens at an address of a host.
func (n *network) listen(address string) (net.Listener, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[at] != nil || n.dead[at.Addr()] {
		return nil, fmt.Errorf("listen on %s: %w", at, syscall.EADDRINUSE)
	}
	l := &listener{of: n, at: at, accepted: make(chan net.Conn), closed: make(chan struct{})}
	n.listeners[at] = l
	return l, nil
}

// dial connects a host to an address. It waits while the path is silent, as SYN packets are sent
// again.
func (n *network) dial(ctx context.Context, from netip.Addr, address string) (net.Conn, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	there, back := n.path(from, to.Addr()), n.path(to.Addr(), from)
	for _, p := range []*path{there, back} {
		for silent, change := p.isSilent(); silent; silent, change = p.isSilent() {
			select {
			case <-change:
			case <-ctx.Done():
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
			}
		}
	}
	if late := there.latency() + back.latency(); late > 0 {
		select {
		case <-time.After(late):
		case <-ctx.Done():
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
		}
	}
	return n.connect(ctx, from, to, newStream(there), newStream(back))
}

// connect makes a connection, and hands its other end to the listener.
func (n *network) connect(ctx context.Context, from netip.Addr, to netip.AddrPort, there, back *stream) (net.Conn, error) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	n.mu.Lock()
	l := n.listeners[to]
	if l == nil || n.dead[from] || n.apart[[2]netip.Addr{from, to.Addr()}] > 0 {
		n.mu.Unlock()
		return nil, refused
	}
	n.ports++
	near, away := net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, n.ports)), net.TCPAddrFromAddrPort(to)
	one := &conn{in: back, out: there, near: near, away: away}
	other := &conn{in: there, out: back, near: away, away: near}
	one.forget, other.forget = func() { n.forget(one) }, func() { n.forget(other) }
	n.conns[one], n.conns[other] = true, true
	n.mu.Unlock()
	select {
	case l.accepted <- other:
		return one, nil
	case <-l.closed:
	case <-ctx.Done():
	}
	_, _ = one.Close(), other.Close() // no program has had them
	return nil, refused
}

func (n *network) forget(c *conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.conns, c)
}

// listener accepts the connections to an address.
type listener struct {
	of       *network
	at       netip.AddrPort
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.of.mu.Lock()
		defer l.of.mu.Unlock()
		if l.of.listeners[l.at] == l {
			delete(l.of.listeners, l.at)
		}
	})
	return nil
}

func (l *listener) Addr() net.Addr { return net.TCPAddrFromAddrPort(l.at) }
