package embedded

import (
	"net"
	"sync"
	"time"
)

// conn buffers writes. The pipe of miniredis has no buffer, so without it a long
// pipeline would deadlock: the client writes commands while the server waits for
// the client to read its replies.
type conn struct {
	net.Conn
	gone func(*conn) // called once, when the connection is closed

	mu      sync.Mutex
	out     []byte // not written yet
	err     error  // of the last write
	wake    chan struct{}
	closing sync.Once
	closed  chan struct{}
	done    sync.WaitGroup
}

func newConn(pipe net.Conn, gone func(*conn)) *conn {
	c := &conn{Conn: pipe, gone: gone, wake: make(chan struct{}, 1), closed: make(chan struct{})}
	c.done.Go(c.write)
	return c
}

// Write appends b to the buffer and never blocks.
func (c *conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	c.out = append(c.out, b...)
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return len(b), nil
}

func (c *conn) write() {
	for {
		select {
		case <-c.wake:
		case <-c.closed:
			return
		}
		c.mu.Lock()
		out := c.out
		c.out = nil
		c.mu.Unlock()
		if _, err := c.Conn.Write(out); err != nil {
			c.mu.Lock()
			c.err = err
			c.mu.Unlock()
			return
		}
	}
}

// SetDeadline sets the read deadline. Writes never wait.
func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetWriteDeadline does nothing: writes never wait.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// Close closes the connection and drops the buffer.
func (c *conn) Close() (err error) {
	c.closing.Do(func() {
		close(c.closed)
		err = c.Conn.Close()
		c.done.Wait()
		c.gone(c)
	})
	return err
}
