package remote

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/wakebell/wakebell/remote/internal/limits"
)

const (
	// streamWindow is how much of a stream a peer may send that is not read; a
	// message up to it is held by this alone.
	streamWindow = limits.StreamWindow
	connWindow   = 1 << 20

	// bodyWithin is how long a message may take from its first byte to its last,
	// and a second more for each bodyRate bytes.
	bodyWithin = 10 * time.Second
	bodyRate   = 256 << 10

	// maxTracked bounds the streams of a connection whose end has not been sent.
	maxTracked = 1024

	// prefixBytes come before a message of gRPC: whether it is compressed, and
	// its length.
	prefixBytes = 5
)

var (
	errBodyLate    = errors.New("a message did not arrive in time")
	errManyStreams = errors.New("too many streams without an end")
)

// intake is a connection whose messages are counted while they arrive. gRPC
// takes a message of any stream in full before it tells of it; so this follows
// the frames of HTTP/2 on their way to it. A message that is larger than a
// window is counted with its whole length before more of it is read, so that
// all of those that are let in can be completed.
type intake struct {
	net.Conn
	of      *connection
	budget  *limits.Budget // bytes of messages
	limit   uint32         // of a message, beyond which gRPC refuses it
	refused func(host string, err error)
	in, out frameReader

	mu      sync.Mutex
	streams map[uint32]*incoming
	wanted  []*incoming // that are to be counted before the next read
	counted int         // of streams
	bounded bool        // the next read has a deadline
	closed  bool
}

// incoming is the message that arrives in a stream.
type incoming struct {
	stream uint32
	prefix [prefixBytes]byte
	have   int    // of the prefix
	left   uint32 // of the message
	size   uint32
	until  time.Time // it has to be there
	held   int       // bytes that are counted for it
	done   bool      // it has arrived
}

// party is what its messages are charged to.
func (c *intake) party() limits.Party {
	of, _ := c.of.account()
	return of
}

// Read implements net.Conn.
func (c *intake) Read(p []byte) (int, error) {
	if err := c.admit(); err != nil {
		return 0, c.refuse(err)
	}
	for {
		n, err := c.Conn.Read(p)
		if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && c.isBounded() {
			if err := c.bound(); err != nil {
				return 0, c.refuse(err)
			}
			continue
		}
		if n > 0 {
			c.mu.Lock()
			parsed := c.in.read(p[:n], c)
			c.mu.Unlock()
			if parsed != nil {
				return 0, c.refuse(parsed)
			}
		}
		return n, err
	}
}

func (c *intake) refuse(err error) error {
	c.refused(c.of.host, err)
	_ = c.Conn.Close() // it is over either way
	return err
}

// admit counts what was announced by the last read. Before the first call with
// credentials nothing is: gRPC has refused its streams.
func (c *intake) admit() error {
	c.mu.Lock()
	wanted := c.wanted
	c.wanted = nil
	idle := len(wanted) == 0 && c.counted == 0 && !c.bounded
	c.mu.Unlock()
	if idle {
		return nil
	}
	of, known := c.of.account()
	for _, m := range wanted {
		if !known {
			c.forget(m.stream)
			continue
		}
		err := c.budget.Await(of, int(m.size), bodyWithin, c.of.ended)
		if err != nil {
			return err
		}
		c.mu.Lock()
		if c.streams[m.stream] != m || c.closed { // it ended meanwhile
			c.mu.Unlock()
			c.budget.Give(of, int(m.size))
			continue
		}
		m.held, m.until = int(m.size), time.Now().Add(bodyWithin+time.Duration(m.size/bodyRate)*time.Second)
		c.counted++
		c.mu.Unlock()
	}
	return c.bound()
}

func (c *intake) isBounded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bounded
}

// bound has the next read end when the first message is late.
func (c *intake) bound() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var first time.Time
	for _, m := range c.streams {
		if m.held > 0 && !m.done && (first.IsZero() || m.until.Before(first)) {
			first = m.until
		}
	}
	if !first.IsZero() && !time.Now().Before(first) {
		return errBodyLate
	}
	if first.IsZero() && !c.bounded {
		return nil
	}
	c.bounded = !first.IsZero()
	return c.SetReadDeadline(first)
}

// Write implements net.Conn: what ends a stream is looked for.
func (c *intake) Write(p []byte) (int, error) {
	c.mu.Lock()
	_ = c.out.read(p, (*sent)(c)) // it has no limit
	c.mu.Unlock()
	return c.Conn.Write(p)
}

// Close implements net.Conn.
func (c *intake) Close() error {
	c.mu.Lock()
	c.closed = true
	for stream := range c.streams {
		c.end(stream)
	}
	c.mu.Unlock()
	return c.Conn.Close()
}

func (c *intake) forget(stream uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end(stream)
}

// end forgets a stream. The lock is held.
func (c *intake) end(stream uint32) {
	if m := c.streams[stream]; m != nil {
		c.release(m)
		delete(c.streams, stream)
	}
}

// release gives back what is counted for a message. The lock is held.
func (c *intake) release(m *incoming) {
	if m.held > 0 {
		c.budget.Give(c.party(), m.held)
		m.held = 0
		c.counted--
	}
}

// taken hands what is counted for a message of this size to who carries it out;
// 0: nothing is.
func (c *intake) taken(size int) int {
	if size <= streamWindow {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.streams {
		if m.done && m.held == size {
			m.held = 0
			c.counted--
			return size
		}
	}
	return 0
}

// begin implements frameSink.
func (c *intake) begin(f *frameReader) error {
	switch f.kind {
	case frameHeaders:
		if c.streams[f.stream] == nil {
			if len(c.streams) >= maxTracked {
				return errManyStreams
			}
			c.streams[f.stream] = &incoming{stream: f.stream}
		}
	case frameReset:
		c.end(f.stream)
	}
	return nil
}

// data implements frameSink: bytes of messages, one after the other.
func (c *intake) data(stream uint32, p []byte) {
	m := c.streams[stream]
	for m != nil && len(p) > 0 {
		if m.have < prefixBytes {
			n := copy(m.prefix[m.have:], p)
			m.have, p = m.have+n, p[n:]
			if m.have == prefixBytes {
				c.release(m) // of the message before; whoever has it has taken it
				m.size = binary.BigEndian.Uint32(m.prefix[1:])
				m.left, m.done = m.size, false
				if m.size > streamWindow && m.size <= c.limit {
					c.wanted = append(c.wanted, m)
				}
			}
		} else {
			n := min(uint32(len(p)), m.left) //nolint:gosec // a read is small
			m.left, p = m.left-n, p[n:]
		}
		if m.have == prefixBytes && m.left == 0 {
			m.have, m.done = 0, true
		}
	}
}

// sent is an intake as the frames see it that are sent.
type sent intake

// begin implements frameSink.
func (c *sent) begin(f *frameReader) error {
	if f.kind == frameReset || (f.kind == frameHeaders && f.flags&flagEndStream != 0) {
		(*intake)(c).end(f.stream)
	}
	return nil
}

// data implements frameSink.
func (*sent) data(uint32, []byte) {}
