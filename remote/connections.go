package remote

import (
	"errors"
	"maps"
	"net"
	"slices"
	"sync"

	"google.golang.org/grpc/credentials"
)

var errTooManyConnections = errors.New("too many connections")

// counted are credentials that refuse a connection when there are too many:
// before its handshake, which is what costs.
type counted struct {
	credentials.TransportCredentials
	limit   int
	refused func(from net.Addr)

	mu     sync.Mutex
	conns  map[string]*countedConn // by the addresses of their peers
	closed bool
}

func (c *counted) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	left := &countedConn{Conn: raw, of: c, shown: map[tokenHash]struct{}{}}
	if !c.enter(left) {
		c.refused(raw.RemoteAddr())
		return nil, nil, errTooManyConnections
	}
	conn, info, err := c.TransportCredentials.ServerHandshake(left)
	if err != nil {
		_ = left.Close() // the error of the handshake says more
	}
	return conn, info, err
}

func (c *counted) Clone() credentials.TransportCredentials { return c }

func (c *counted) enter(conn *countedConn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.conns) >= c.limit {
		return false
	}
	c.conns[conn.RemoteAddr().String()] = conn
	return true
}

func (c *counted) leave(conn *countedConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if from := conn.RemoteAddr().String(); c.conns[from] == conn {
		delete(c.conns, from)
	}
}

// show notes that a token is used on the connection from an address.
func (c *counted) show(from net.Addr, token tokenHash) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn := c.conns[from.String()]; conn != nil {
		conn.shown[token] = struct{}{}
	}
}

// closeUnless ends the connections on which another token is used than those.
func (c *counted) closeUnless(known tokenOwners) {
	c.mu.Lock()
	var strange []*countedConn
	for _, conn := range c.conns {
		for token := range conn.shown {
			if _, ok := known[token]; !ok {
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
func (c *counted) closeAll() {
	c.mu.Lock()
	c.closed = true
	conns := slices.Collect(maps.Values(c.conns))
	c.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close() // it is over either way
	}
}

type countedConn struct {
	net.Conn
	of    *counted
	shown map[tokenHash]struct{} // the tokens by which its calls were let in
}

func (c *countedConn) Close() error {
	c.of.leave(c)
	return c.Conn.Close()
}
