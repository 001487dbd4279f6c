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

// firstCallWithin is how long after connecting the first call with credentials must
// arrive.
const firstCallWithin = 10 * time.Second

var (
	errTooManyConnections = errors.New("too many connections")
	errNoFirstCall        = fmt.Errorf("no call with credentials within %v of connecting", firstCallWithin)
	errEvicted            = errors.New("evicted by a newer connection: too many connections without a call with credentials")
)

// Connections are transport credentials that track every connection of a listener. A
// connection waits until its first call with credentials. Waiting connections are
// bounded separately; beyond the bound the oldest one of the host with most waiting
// connections is evicted. So connections without credentials do not keep others out.
type Connections struct {
	credentials.TransportCredentials
	shares  *limits.Budget // of connections with credentials
	waiters int            // maximum number of waiting connections
	Refused func(host string, err error)
	Count   func(net.Conn, *Connection) net.Conn

	mu      sync.Mutex
	conns   map[string]*Connection // by the addresses of their peers
	waiting *ordered.List          // of *Connection, the oldest first
	closed  bool
}

// NewConnections returns credentials that admit at most most connections, without
// TLS if cfg is nil.
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
		if !errors.Is(err, io.EOF) && !left.over() { // else it was a probe, or was closed by the node
			c.Refused(left.host, fmt.Errorf("the TLS handshake failed: %w", err))
			sendTLSAlert(raw, err)
		}
		_ = left.Close() // the error of the handshake says more
		return nil, nil, err
	}
	return c.Count(conn, left), info, nil
}

// handshaking is a connection that stays open after a failed handshake, so that the
// peer can receive an alert.
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

// sendTLSAlert sends an alert to a peer that speaks HTTP/2 without TLS, so that its
// error names the cause.
func sendTLSAlert(raw net.Conn, err error) {
	plain, ok := errors.AsType[tls.RecordHeaderError](err)
	if !ok || string(plain.RecordHeader[:]) != "PRI *" {
		return
	}
	_ = raw.SetDeadline(time.Now().Add(time.Second)) // best effort
	_, _ = raw.Write(wire.AlertProtocolVersion)
	if half, ok := raw.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_, _ = io.CopyN(io.Discard, raw, 4096) // unread bytes would reset the connection
}

// Clone implements credentials.TransportCredentials.
func (c *Connections) Clone() credentials.TransportCredentials { return c }

// Enter adds a connection that waits for its first call. It returns false after
// CloseAll.
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

// oldestOfBusiestHost returns the oldest waiting connection of the host with most of
// them. The caller holds the lock.
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

// drop forgets a connection. The caller holds the lock.
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

// Admit accepts the credentials of a call. With its first credentials the connection
// is charged to their owner. The error names the bound that is reached.
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

// Show records that a token is used on the connection from an address.
func (c *Connections) Show(from net.Addr, token access.TokenHash) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn := c.conns[from.String()]; conn != nil {
		conn.shown[token] = struct{}{}
	}
}

// At returns the connection from an address, or nil if it has ended.
func (c *Connections) At(from net.Addr) *Connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conns[from.String()]
}

// CloseUnless closes the connections on which a token is used that is not known.
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

// CloseAll closes all connections and admits no new ones. Nothing else ends a call
// that waits for its peer.
func (c *Connections) CloseAll() {
	c.mu.Lock()
	c.closed = true
	conns := slices.Collect(maps.Values(c.conns))
	c.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close() // it is over either way
	}
}

// Connection is one connection, from its first byte. Fields other than the net.Conn
// are guarded by the lock of Connections.
type Connection struct {
	net.Conn
	of         *Connections
	from, host string
	ended      chan struct{} // closed with the connection
	intake     atomic.Pointer[Intake]

	first    *time.Timer                   // closes the connection while it waits
	waits    *ordered.Element              // nil: it has credentials, or has ended
	owner    string                        // of the first credentials
	admitted bool                          // it is charged to the owner
	gone     bool                          // whether ended is closed
	shown    map[access.TokenHash]struct{} // the tokens of its calls
}

// Party returns the party that an admitted connection is charged to. The caller
// holds the lock.
func (c *Connection) Party() limits.Party { return limits.Party{Principal: c.owner, Host: c.host} }

// Close closes the connection and frees its place.
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

// Counting returns the Intake that counts the messages of the connection.
func (c *Connection) Counting() *Intake { return c.intake.Load() }

// account returns the party that is charged. known is false if the connection has no
// credentials yet.
func (c *Connection) account() (of limits.Party, known bool) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	return c.Party(), c.admitted
}

// Cut closes the connection from an address.
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
