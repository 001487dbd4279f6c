package conn

import (
	ordered "container/list"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/wakebell/wakebell/remote/internal/access"
	"github.com/wakebell/wakebell/remote/internal/limits"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

// firstCallWithin is how long a connection may take from its begin to its first
// call with credentials.
const firstCallWithin = 10 * time.Second

var (
	errTooManyConnections = errors.New("too many connections")
	errNoFirstCall        = fmt.Errorf("no call with credentials within %v of connecting", firstCallWithin)
	errEvicted            = errors.New("the connection made room for newer ones: too many have no call with credentials yet")
)

// Connections are credentials that know every connection of a listener. A
// connection waits until its first call with credentials; those that wait have
// places of their own, and the oldest one of the host that has the most makes
// room for the next. So connections without credentials keep nobody out.
type Connections struct {
	credentials.TransportCredentials
	shares  *limits.Budget // of connections with credentials
	waiters int            // how many may wait
	Refused func(host string, err error)
	Count   func(net.Conn, *Connection) net.Conn

	mu      sync.Mutex
	conns   map[string]*Connection // by the addresses of their peers
	waiting *ordered.List          // of *connection, the oldest first
	closed  bool
}

// NewConnections returns credentials that admit at most so many connections; nil: without TLS.
func NewConnections(most int, cfg *tls.Config) *Connections {
	return &Connections{
		TransportCredentials: wire.Transport(cfg),
		shares:               limits.NewBudget(limits.Connections(most)),
		waiters:              limits.Waiting(most).Total,
		conns:                map[string]*Connection{}, waiting: ordered.New(),
	}
}

// ServerHandshake implements credentials.TransportCredentials.
func (c *Connections) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	left := &Connection{Conn: raw, of: c, from: raw.RemoteAddr().String(), host: HostOf(raw.RemoteAddr()), shown: map[access.TokenHash]struct{}{}}
	left.ended = make(chan struct{})
	if !c.Enter(left) {
		return nil, nil, errTooManyConnections
	}
	held := &handshaking{Connection: left}
	conn, info, err := c.TransportCredentials.ServerHandshake(held)
	held.done.Store(true)
	if err != nil {
		if !errors.Is(err, io.EOF) && !left.over() { // else it is a probe, or was closed by us
			c.Refused(left.host, fmt.Errorf("the TLS handshake failed: %w", err))
			sendTLSAlert(raw, err)
		}
		_ = left.Close() // the error of the handshake says more
		return nil, nil, err
	}
	return c.Count(conn, left), info, nil
}

// handshaking is a connection that a failed handshake leaves open, so that its
// peer can be told why.
type handshaking struct {
	*Connection
	done atomic.Bool
}

// Close implements net.Conn.
func (h *handshaking) Close() error {
	if !h.done.Load() {
		return nil
	}
	return h.Connection.Close()
}

// sendTLSAlert answers a peer that speaks HTTP/2 without TLS with an alert, which tells
// it what is wrong.
func sendTLSAlert(raw net.Conn, err error) {
	plain, ok := errors.AsType[tls.RecordHeaderError](err)
	if !ok || string(plain.RecordHeader[:]) != "PRI *" {
		return
	}
	_ = raw.SetDeadline(time.Now().Add(time.Second)) // it is a courtesy
	_, _ = raw.Write(wire.AlertProtocolVersion)
	if half, ok := raw.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_, _ = io.CopyN(io.Discard, raw, 4096) // what is left unread would reset the connection
}

// Clone implements credentials.TransportCredentials.
func (c *Connections) Clone() credentials.TransportCredentials { return c }

// Enter has a connection wait for its first call.
func (c *Connections) Enter(conn *Connection) bool {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return false
	}
	var evicted *Connection
	if c.waiting.Len() >= c.waiters {
		evicted = c.oldestOfBusiestHost()
		c.drop(evicted)
	}
	c.conns[conn.from] = conn
	conn.waits = c.waiting.PushBack(conn)
	conn.first = time.AfterFunc(firstCallWithin, func() {
		if c.still(conn) {
			c.Refused(conn.host, errNoFirstCall)
			_ = conn.Close() // it is over either way
		}
	})
	c.mu.Unlock()
	if evicted != nil {
		c.Refused(evicted.host, errEvicted)
		_ = evicted.Close() // it is over either way
	}
	return true
}

// oldestOfBusiestHost is the oldest connection that waits, of the host that has most of
// them. The lock is held.
func (c *Connections) oldestOfBusiestHost() *Connection {
	hosts, most := map[string]int{}, 0
	for e := c.waiting.Front(); e != nil; e = e.Next() {
		host := e.Value.(*Connection).host
		hosts[host]++
		most = max(most, hosts[host])
	}
	for e := c.waiting.Front(); e != nil; e = e.Next() {
		if conn := e.Value.(*Connection); hosts[conn.host] == most {
			return conn
		}
	}
	return nil
}

func (c *Connections) still(conn *Connection) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return conn.waits != nil
}

// drop forgets a connection. The lock is held.
func (c *Connections) drop(conn *Connection) {
	if conn.waits != nil {
		c.waiting.Remove(conn.waits)
		conn.waits = nil
	}
	conn.first.Stop()
	if conn.admitted {
		conn.admitted = false
		c.shares.Give(conn.Party(), 1)
	}
	if c.conns[conn.from] == conn {
		delete(c.conns, conn.from)
	}
	if !conn.gone {
		conn.gone = true
		close(conn.ended)
	}
}

// Admit takes the credentials of a call. With the first ones the connection
// counts for their owner. The error says which bound is reached.
func (c *Connections) Admit(from net.Addr, owner string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	conn := c.conns[from.String()]
	if conn == nil || conn.waits == nil {
		return nil
	}
	if err := c.shares.Take(limits.Party{Principal: owner, Host: conn.host}, 1); err != nil {
		return err
	}
	conn.owner, conn.admitted = owner, true
	c.waiting.Remove(conn.waits)
	conn.waits = nil
	conn.first.Stop()
	return nil
}

// Show notes that a token is used on the connection from an address.
func (c *Connections) Show(from net.Addr, token access.TokenHash) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn := c.conns[from.String()]; conn != nil {
		conn.shown[token] = struct{}{}
	}
}

// At is the connection from an address; nil: it is over.
func (c *Connections) At(from net.Addr) *Connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conns[from.String()]
}

// CloseUnless ends the connections on which another token is used than those.
func (c *Connections) CloseUnless(known func(access.TokenHash) bool) {
	c.mu.Lock()
	var revoked []*Connection
	for _, conn := range c.conns {
		for token := range conn.shown {
			if !known(token) {
				revoked = append(revoked, conn)
				break
			}
		}
	}
	c.mu.Unlock()
	for _, conn := range revoked {
		_ = conn.Close() // it is over either way
	}
}

// CloseAll ends all connections and lets none in any more: the only way to end
// a call that waits for its peer.
func (c *Connections) CloseAll() {
	c.mu.Lock()
	c.closed = true
	conns := slices.Collect(maps.Values(c.conns))
	c.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close() // it is over either way
	}
}

// Connection is one, from its first byte. What is not its net.Conn is guarded by
// the lock of the connections.
type Connection struct {
	net.Conn
	of         *Connections
	from, host string
	ended      chan struct{} // closed with it
	intake     atomic.Pointer[Intake]

	first    *time.Timer                   // ends it while it waits
	waits    *ordered.Element              // nil: it has shown credentials, or is over
	owner    string                        // by the first credentials
	admitted bool                          // it counts for the owner
	gone     bool                          // ended is closed
	shown    map[access.TokenHash]struct{} // the tokens by which its calls were let in
}

// Party is what it is charged to, once it is admitted. The lock is held.
func (c *Connection) Party() limits.Party { return limits.Party{Principal: c.owner, Host: c.host} }

// Close ends the connection and gives its place back.
func (c *Connection) Close() error {
	c.of.mu.Lock()
	c.of.drop(c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

func (c *Connection) over() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// Counting is what counts its messages.
func (c *Connection) Counting() *Intake { return c.intake.Load() }

// account is what the connection is charged to; false: it has shown no credentials.
func (c *Connection) account() (of limits.Party, known bool) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	return c.Party(), c.admitted
}

// Cut ends the connection from an address.
func (c *Connections) Cut(from net.Addr) {
	c.mu.Lock()
	conn := c.conns[from.String()]
	c.mu.Unlock()
	if conn != nil {
		_ = conn.Close() // it is over either way
	}
}

// HostOf returns the host of an address.
func HostOf(addr net.Addr) string {
	host, _, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	return host
}
