package fleet

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// stream is one direction of a connection. Writes never wait, as into a kernel's buffer that
// is large enough, and bytes arrive after the delay of the path, in their order.
type stream struct {
	path *path

	mu       sync.Mutex
	sent     []packet
	last     error // what the reader gets after what was sent; nil: more may come
	err      error // what it gets at once; nil: neither has it gone nor is the connection broken
	broken   bool  // the writer gets an error
	deadline time.Time
	change   chan struct{} // closed at each change
}

// packet is what one write has sent.
type packet struct {
	bytes []byte
	at    time.Time // when it arrives
}

func newStream(p *path) *stream { return &stream{path: p, change: make(chan struct{})} }

// changed wakes the reader. mu is held.
func (s *stream) changed() {
	close(s.change)
	s.change = make(chan struct{})
}

// write sends bytes. That the reader has gone is not known here before the other direction says so.
func (s *stream) write(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.broken:
		return syscall.EPIPE
	case s.last != nil:
		return net.ErrClosed
	case s.err != nil:
		return nil
	}
	s.sent = append(s.sent, packet{append([]byte(nil), b...), time.Now().Add(s.path.latency())})
	s.changed()
	return nil
}

// read returns the next bytes. While the path is silent they wait, as bytes do that TCP sends
// again and again.
func (s *stream) read(b []byte) (int, error) {
	for {
		silent, speaks := s.path.isSilent()
		s.mu.Lock()
		now := time.Now()
		next := time.Time{}
		switch {
		case s.err != nil:
			s.mu.Unlock()
			return 0, s.err
		case !s.deadline.IsZero() && !now.Before(s.deadline):
			s.mu.Unlock()
			return 0, os.ErrDeadlineExceeded
		case !silent && len(s.sent) > 0 && !now.Before(s.sent[0].at):
			n := copy(b, s.sent[0].bytes)
			if s.sent[0].bytes = s.sent[0].bytes[n:]; len(s.sent[0].bytes) == 0 {
				s.sent = s.sent[1:]
			}
			s.mu.Unlock()
			return n, nil
		case !silent && len(s.sent) > 0:
			next = s.sent[0].at
		case !silent && s.last != nil:
			s.mu.Unlock()
			return 0, s.last
		}
		if !s.deadline.IsZero() && (next.IsZero() || s.deadline.Before(next)) {
			next = s.deadline
		}
		change := s.change
		s.mu.Unlock()
		await(next, change, speaks)
	}
}

// await waits for one of two signals, and at most until an instant; zero: without a limit.
func await(until time.Time, one, other <-chan struct{}) {
	var late <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		late = t.C
	}
	select {
	case <-one:
	case <-other:
	case <-late:
	}
}

// end ends the stream after what was sent.
func (s *stream) end(last error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = last
	}
	s.changed()
}

// stop ends the reading at once.
func (s *stream) stop(err error, broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err, s.sent = err, nil
	}
	s.broken = s.broken || broken
	s.changed()
}

func (s *stream) setDeadline(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = t
	s.changed()
}

// conn is one end of a connection.
type conn struct {
	in, out    *stream
	near, away net.Addr
	once       sync.Once
	forget     func()
}

func (c *conn) Read(b []byte) (int, error) { return c.in.read(b) }

func (c *conn) Write(b []byte) (int, error) {
	if err := c.out.write(b); err != nil {
		return 0, &net.OpError{Op: "write", Net: "tcp", Source: c.near, Addr: c.away, Err: err}
	}
	return len(b), nil
}

// Close implements net.Conn. The other end reads what was sent before.
func (c *conn) Close() error {
	c.shut(io.EOF)
	return nil
}

// shut ends this end of the connection. The other gets an error after what was sent, and not
// while the path to it is silent.
func (c *conn) shut(last error) {
	c.once.Do(func() {
		c.in.stop(net.ErrClosed, false)
		c.out.end(last)
		c.forget()
	})
}

// reset breaks both directions at once, for both ends.
func (c *conn) reset() {
	err := &net.OpError{Op: "read", Net: "tcp", Source: c.near, Addr: c.away, Err: syscall.ECONNRESET}
	c.in.stop(err, true)
	c.out.stop(err, true)
}

func (c *conn) LocalAddr() net.Addr                { return c.near }
func (c *conn) RemoteAddr() net.Addr               { return c.away }
func (c *conn) SetReadDeadline(t time.Time) error  { c.in.setDeadline(t); return nil }
func (c *conn) SetDeadline(t time.Time) error      { return c.SetReadDeadline(t) }
func (c *conn) SetWriteDeadline(_ time.Time) error { return nil } // writes never wait
