package conn

import (
	"net"

	"github.com/wakebell/wakebell/remote/internal/access"
)

// Beside returns Connections for another listener. Those with credentials share the
// bounds of c.
func (c *Connections) Beside() *Connections {
	other := NewConnections(0, nil)
	other.shares, other.waiters, other.Refused = c.shares, c.waiters, c.Refused
	return other
}

// Tracked is a connection of a listener that gRPC does not read.
type Tracked struct {
	*Connection
	Moved func(received, sent int) // called with the bytes of each read and write
}

// Track adds a connection that waits for its first request with credentials. It returns
// nil after CloseAll.
func (c *Connections) Track(raw net.Conn) *Tracked {
	left := &Connection{Conn: raw, of: c, from: raw.RemoteAddr().String(), host: HostOf(raw.RemoteAddr()), shown: map[access.TokenHash]struct{}{}}
	left.ended = make(chan struct{})
	if !c.Enter(left) {
		return nil
	}
	return &Tracked{Connection: left}
}

// Read implements net.Conn.
func (t *Tracked) Read(p []byte) (int, error) {
	n, err := t.Connection.Read(p)
	t.Moved(n, 0)
	return n, err
}

// Write implements net.Conn.
func (t *Tracked) Write(p []byte) (int, error) {
	n, err := t.Connection.Write(p)
	t.Moved(0, n)
	return n, err
}
