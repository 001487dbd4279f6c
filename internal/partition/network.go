// Package partition runs the servers of tests on hosts whose links can be cut, one way or
// both, while all processes go on. A host is a loopback address from which its processes
// connect; servers are reached through ports of a [Network], which knows by the address of
// a connection which link it uses. It needs a system on which all of 127.0.0.0/8 is local,
// such as Linux.
package partition

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// dialTimeout bounds the connection to a server, which is on the same machine.
const dialTimeout = 5 * time.Second

// Host returns the address of a host, 1 – 200.
func Host(n int) string { return fmt.Sprintf("127.0.0.%d", n+10) }

// Dialer connects from a host, as the dialer of a Redis client. The empty host is any.
func Dialer(host string) func(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	if host != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(host)}
	}
	return d.DialContext
}

// Network is the links between hosts. Its methods may be called concurrently.
type Network struct {
	done    context.Context // ends with the test
	serving sync.WaitGroup

	mu      sync.Mutex
	blocked map[link]bool
	changed chan struct{}          // closed when blocked changes
	conns   map[io.Closer]struct{} // connections and listeners
	ended   bool
}

// link is a direction between two hosts.
type link struct{ from, to string }

// NewNetwork returns a network without cuts. It ends with the test.
func NewNetwork(t testing.TB) *Network {
	t.Helper()
	done, end := context.WithCancel(context.WithoutCancel(t.Context()))
	n := &Network{done: done, blocked: map[link]bool{}, changed: make(chan struct{}), conns: map[io.Closer]struct{}{}}
	t.Cleanup(func() {
		end()
		n.mu.Lock()
		n.ended = true
		for c := range n.conns {
			_ = c.Close()
		}
		n.mu.Unlock()
		n.serving.Wait()
	})
	return n
}

// Port is where a server of a host is reached.
type Port struct {
	Addr string // host:port, on 127.0.0.1
	Port string

	mu       sync.Mutex
	upstream string
}

// To says where the server listens. Connections before that are closed.
func (p *Port) To(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.upstream = address
}

func (p *Port) server() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.upstream
}

// Listen opens a port of a server on a host.
func (n *Network) Listen(t testing.TB, host string) *Port {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("partition: %v", err)
	}
	p := &Port{Addr: l.Addr().String()}
	_, p.Port, _ = net.SplitHostPort(p.Addr)
	if !n.admit(l) {
		t.Fatal("partition: the network has ended")
	}
	n.serving.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			n.serving.Go(func() { n.serve(client, p, host) })
		}
	})
	return p
}

// Block holds all bytes from the hosts of one list to those of the other until Heal.
// Connections stay open, as TCP has them while it sends again what is not confirmed; what
// is held arrives when they are healed. Those that are opened meanwhile are never
// established: they are closed when the link is healed.
func (n *Network) Block(from, to []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range from {
		for _, b := range to {
			n.blocked[link{a, b}] = a != b
		}
	}
	n.wake()
}

// Heal ends all cuts.
func (n *Network) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.blocked)
	n.wake()
}

func (n *Network) wake() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// open waits until bytes may pass. It reports whether that was so at once, and false when
// the network ends.
func (n *Network) open(l link) (atOnce, ok bool) {
	for atOnce = true; ; atOnce = false {
		n.mu.Lock()
		blocked, changed := n.blocked[l], n.changed
		n.mu.Unlock()
		if !blocked {
			return atOnce, true
		}
		select {
		case <-changed:
		case <-n.done.Done():
			return false, false
		}
	}
}

// admit registers what the end of the network closes.
func (n *Network) admit(c io.Closer) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended {
		_ = c.Close()
		return false
	}
	n.conns[c] = struct{}{}
	return true
}

func (n *Network) close(c net.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.conns, c)
	_ = c.Close()
}

// serve passes a connection from a host on to the server of another.
func (n *Network) serve(client net.Conn, p *Port, host string) {
	if !n.admit(client) {
		return
	}
	defer n.close(client)
	from, _, _ := net.SplitHostPort(client.RemoteAddr().String())
	for _, l := range []link{{from, host}, {host, from}} {
		if atOnce, ok := n.open(l); !atOnce || !ok {
			return // never established
		}
	}
	server, err := net.DialTimeout("tcp", p.server(), dialTimeout)
	if err != nil || !n.admit(server) {
		return
	}
	defer n.close(server)
	var up sync.WaitGroup
	up.Go(func() { n.copy(server, client, link{from, host}) })
	n.copy(client, server, link{host, from})
	up.Wait()
}

// copy passes bytes, and the end of them, in one direction.
func (n *Network) copy(to, from net.Conn, l link) {
	buf := make([]byte, 32<<10)
	for {
		k, err := from.Read(buf)
		if _, ok := n.open(l); !ok {
			return
		}
		if k > 0 {
			if _, failed := to.Write(buf[:k]); failed != nil {
				_ = from.Close() // its other side has ended
				return
			}
		}
		if err != nil {
			if half, ok := to.(*net.TCPConn); ok {
				_ = half.CloseWrite() // it may have ended already
			}
			return
		}
	}
}
