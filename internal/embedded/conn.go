package embedded

import (
	"net"
	"sync"
	"time"
)

// conn writes without waiting for its peer: the pipe of miniredis has no buffer,
// so a pipeline would wait for a server that waits to be heard itself.
type conn struct {
	net.Conn
	gone func(*conn) // told once, when it is closed

	mu      sync.Mutex
	out     []byte // is still to be written
	err     error  // of writing
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

// Write takes all of b at once.
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

// SetDeadline is for reading: writing does not wait.
func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetWriteDeadline does nothing, as SetDeadline.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// Close ends the connection; what is not written is dropped.
func (c *conn) Close() (err error) {
	c.closing.Do(func() {
		close(c.closed)
		err = c.Conn.Close()
		c.done.Wait()
		c.gone(c)
	})
	return err
}
