package remote

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

	"github.com/wakebell/wakebell/remote/internal/limits"
)

// firstCallWithin is how long a connection may take from its begin to its first
// call with credentials.
const firstCallWithin = 10 * time.Second

var (
	errTooManyConnections = errors.New("too many connections")
	errNoFirstCall        = fmt.Errorf("no call with credentials within %v of connecting", firstCallWithin)
	errEvicted            = errors.New("the connection made room for newer ones: too many have no call with credentials yet")
)

// connections are credentials that know every connection of a listener. A
// connection waits until its first call with credentials; those that wait have
// places of their own, and the oldest one of the host that has the most makes
// room for the next. So connections without credentials keep nobody out.
type connections struct {
	credentials.TransportCredentials
	shares  *limits.Budget // of connections with credentials
	waiters int            // how many may wait
	refused func(host string, err error)
	count   func(net.Conn, *connection) net.Conn

	mu      sync.Mutex
	conns   map[string]*connection // by the addresses of their peers
	waiting *ordered.List          // of *connection, the oldest first
	closed  bool
}

func newConnections(cfg settings) *connections {
	return &connections{
		TransportCredentials: transport(cfg.TLS),
		shares:               limits.NewBudget(limits.Connections(cfg.MaxConnections)),
		waiters:              limits.Waiting(cfg.MaxConnections).Total,
		conns:                map[string]*connection{}, waiting: ordered.New(),
	}
}

// ServerHandshake implements credentials.TransportCredentials.
func (c *connections) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	left := &connection{Conn: raw, of: c, from: raw.RemoteAddr().String(), host: hostOf(raw.RemoteAddr()), shown: map[tokenHash]struct{}{}}
	left.ended = make(chan struct{})
	if !c.enter(left) {
		return nil, nil, errTooManyConnections
	}
	held := &handshaking{connection: left}
	conn, info, err := c.TransportCredentials.ServerHandshake(held)
	held.done.Store(true)
	if err != nil {
		if !errors.Is(err, io.EOF) && !left.over() { // else it is a probe, or was closed by us
			c.refused(left.host, fmt.Errorf("the TLS handshake failed: %w", err))
			sayTLS(raw, err)
		}
		_ = left.Close() // the error of the handshake says more
		return nil, nil, err
	}
	return c.count(conn, left), info, nil
}

// handshaking is a connection that a failed handshake leaves open, so that its
// peer can be told why.
type handshaking struct {
	*connection
	done atomic.Bool
}

// Close implements net.Conn.
func (h *handshaking) Close() error {
	if !h.done.Load() {
		return nil
	}
	return h.connection.Close()
}

// sayTLS answers a peer that speaks HTTP/2 without TLS with an alert, which tells
// it what is wrong.
func sayTLS(raw net.Conn, err error) {
	plain, ok := errors.AsType[tls.RecordHeaderError](err)
	if !ok || string(plain.RecordHeader[:]) != "PRI *" {
		return
	}
	_ = raw.SetDeadline(time.Now().Add(time.Second)) // it is a courtesy
	_, _ = raw.Write(alertProtocolVersion)
	if half, ok := raw.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_, _ = io.CopyN(io.Discard, raw, 4096) // what is left unread would reset the connection
}

// alertProtocolVersion is a TLS record: the peer's protocol is not spoken here.
var alertProtocolVersion = []byte{21, 3, 1, 0, 2, 2, 70}

// Clone implements credentials.TransportCredentials.
func (c *connections) Clone() credentials.TransportCredentials { return c }

// enter has a connection wait for its first call.
func (c *connections) enter(conn *connection) bool {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return false
	}
	var evicted *connection
	if c.waiting.Len() >= c.waiters {
		evicted = c.crowded()
		c.drop(evicted)
	}
	c.conns[conn.from] = conn
	conn.waits = c.waiting.PushBack(conn)
	conn.first = time.AfterFunc(firstCallWithin, func() {
		if c.still(conn) {
			c.refused(conn.host, errNoFirstCall)
			_ = conn.Close() // it is over either way
		}
	})
	c.mu.Unlock()
	if evicted != nil {
		c.refused(evicted.host, errEvicted)
		_ = evicted.Close() // it is over either way
	}
	return true
}

// crowded is the oldest connection that waits, of the host that has most of
// them. The lock is held.
func (c *connections) crowded() *connection {
	hosts, most := map[string]int{}, 0
	for e := c.waiting.Front(); e != nil; e = e.Next() {
		host := e.Value.(*connection).host
		hosts[host]++
		most = max(most, hosts[host])
	}
	for e := c.waiting.Front(); e != nil; e = e.Next() {
		if conn := e.Value.(*connection); hosts[conn.host] == most {
			return conn
		}
	}
	return nil
}

func (c *connections) still(conn *connection) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return conn.waits != nil
}

// drop forgets a connection. The lock is held.
func (c *connections) drop(conn *connection) {
	if conn.waits != nil {
		c.waiting.Remove(conn.waits)
		conn.waits = nil
	}
	conn.first.Stop()
	if conn.admitted {
		conn.admitted = false
		c.shares.Give(conn.party(), 1)
	}
	if c.conns[conn.from] == conn {
		delete(c.conns, conn.from)
	}
	if !conn.gone {
		conn.gone = true
		close(conn.ended)
	}
}

// admit takes the credentials of a call. With the first ones the connection
// counts for their owner. The error says which bound is reached.
func (c *connections) admit(from net.Addr, owner string) error {
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

// show notes that a token is used on the connection from an address.
func (c *connections) show(from net.Addr, token tokenHash) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn := c.conns[from.String()]; conn != nil {
		conn.shown[token] = struct{}{}
	}
}

// at is the connection from an address; nil: it is over.
func (c *connections) at(from net.Addr) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conns[from.String()]
}

// closeUnless ends the connections on which another token is used than those.
func (c *connections) closeUnless(known func(tokenHash) bool) {
	c.mu.Lock()
	var strange []*connection
	for _, conn := range c.conns {
		for token := range conn.shown {
			if !known(token) {
				strange = append(strange, conn)
				break
			}
		}
	}
	c.mu.Unlock()
	for _, conn := range strange {
		_ = conn.Close() // it is over either way
	}
}

// closeAll ends all connections and lets none in any more: the only way to end
// a call that waits for its peer.
func (c *connections) closeAll() {
	c.mu.Lock()
	c.closed = true
	conns := slices.Collect(maps.Values(c.conns))
	c.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close() // it is over either way
	}
}

// connection is one, from its first byte. What is not its net.Conn is guarded by
// the lock of the connections.
type connection struct {
	net.Conn
	of         *connections
	from, host string
	ended      chan struct{} // closed with it
	intake     atomic.Pointer[intake]

	first    *time.Timer            // ends it while it waits
	waits    *ordered.Element       // nil: it has shown credentials, or is over
	owner    string                 // by the first credentials
	admitted bool                   // it counts for the owner
	gone     bool                   // ended is closed
	shown    map[tokenHash]struct{} // the tokens by which its calls were let in
}

// party is what it is charged to, once it is admitted. The lock is held.
func (c *connection) party() limits.Party { return limits.Party{Principal: c.owner, Host: c.host} }

// Close ends the connection and gives its place back.
func (c *connection) Close() error {
	c.of.mu.Lock()
	c.of.drop(c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

func (c *connection) over() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// account is what the connection is charged to; false: it has shown no credentials.
func (c *connection) account() (of limits.Party, known bool) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	return c.party(), c.admitted
}
