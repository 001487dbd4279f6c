package conn

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
	// StreamWindow is how many unread bytes of a stream a peer may send. Messages up to
	// this size are bounded by it alone.
	StreamWindow = limits.StreamWindow
	// ConnWindow is the same for a connection.
	ConnWindow = 1 << 20

	// BodyWithin is how long a message may take from its first byte to its last, plus
	// one second for each bodyRate bytes.
	BodyWithin = 10 * time.Second
	bodyRate   = 256 << 10

	// maxTracked bounds the open streams of a connection.
	maxTracked = 1024

	// A message may arrive in freeFrames frames and one more for each leastFrame bytes:
	// gRPC takes 15 times the memory for bytes that arrive in frames of one byte.
	freeFrames, leastFrame = 128, 512

	// prefixBytes is the length of gRPC's prefix of a message: the flag for compression
	// and the message's length.
	prefixBytes = 5
)

var (
	errBodyLate    = errors.New("a message did not arrive in time")
	errManyStreams = errors.New("too many streams without an end")
	errSmallFrames = errors.New("a message in too many small frames")
)

// Intake is a connection that counts messages while they arrive. gRPC reads a
// message of any stream in full before it delivers it, so Intake parses the HTTP/2
// frames before gRPC does. A message that is larger than a window is counted with
// its whole length before more of it is read, so that every admitted message can be
// completed.
type Intake struct {
	net.Conn
	of      *Connection
	budget  *limits.Budget // bytes of messages
	limit   uint32         // maximum length of a message; gRPC refuses longer ones
	refused func(host string, err error)
	in, out frameReader

	Moved func(received, sent int) // called with the bytes of each read and write; nil: it is not called

	mu      sync.Mutex
	streams map[uint32]*incoming
	wanted  []*incoming // to be counted before the next read
	counted int         // streams whose message is counted
	bounded bool        // whether the next read has a deadline
	closed  bool
}

// incoming is the message that arrives on a stream.
type incoming struct {
	stream uint32
	prefix [prefixBytes]byte
	have   int    // bytes of the prefix that have arrived
	left   uint32 // bytes of the message to come
	size   uint32
	frames uint32    // frames that it has arrived in
	until  time.Time // deadline of its arrival
	held   int       // bytes counted for it
	done   bool      // it has arrived
}

// NewIntake wraps a connection. It counts the arriving messages in a budget.
func NewIntake(conn net.Conn, of *Connection, budget *limits.Budget, limit int, refused func(host string, err error)) *Intake {
	in := &Intake{
		Conn: conn, of: of, budget: budget, limit: uint32(limit), refused: refused, //nolint:gosec // at most 1 GiB
		streams: map[uint32]*incoming{},
	}
	in.in.skip = prefaceBytes
	of.intake.Store(in)
	return in
}

// Party returns the party that is charged for the messages.
func (c *Intake) Party() limits.Party {
	of, _ := c.of.account()
	return of
}

// Read implements net.Conn.
func (c *Intake) Read(p []byte) (int, error) {
	if err := c.Admit(); err != nil {
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
			c.moved(n, 0)
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

func (c *Intake) refuse(err error) error {
	c.refused(c.of.host, err)
	_ = c.Conn.Close() // the connection ends either way
	return err
}

// Admit counts the messages that the last read announced. It skips them before the
// first call with credentials, because gRPC has refused their streams.
func (c *Intake) Admit() error {
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
		err := c.budget.Await(of, int(m.size), BodyWithin, c.of.ended)
		if err != nil {
			return err
		}
		c.mu.Lock()
		if c.streams[m.stream] != m || c.closed { // the stream ended meanwhile
			c.mu.Unlock()
			c.budget.Give(of, int(m.size))
			continue
		}
		m.held, m.until = int(m.size), time.Now().Add(BodyWithin+time.Duration(m.size/bodyRate)*time.Second)
		c.counted++
		c.mu.Unlock()
	}
	return c.bound()
}

func (c *Intake) isBounded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bounded
}

// bound sets the deadline of the next read to the earliest deadline of a message.
func (c *Intake) bound() error {
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

// Write implements net.Conn. It looks for frames that end a stream.
func (c *Intake) Write(p []byte) (int, error) {
	c.mu.Lock()
	_ = c.out.read(p, (*sent)(c)) // sent.begin returns no error
	c.mu.Unlock()
	n, err := c.Conn.Write(p)
	c.moved(0, n)
	return n, err
}

func (c *Intake) moved(received, sent int) {
	if c.Moved != nil {
		c.Moved(received, sent)
	}
}

// Close implements net.Conn.
func (c *Intake) Close() error {
	c.mu.Lock()
	c.closed = true
	for stream := range c.streams {
		c.end(stream)
	}
	c.mu.Unlock()
	return c.Conn.Close()
}

func (c *Intake) forget(stream uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end(stream)
}

// end forgets a stream. The caller holds the lock.
func (c *Intake) end(stream uint32) {
	if m := c.streams[stream]; m != nil {
		c.release(m)
		delete(c.streams, stream)
	}
}

// release returns the bytes counted for a message. The caller holds the lock.
func (c *Intake) release(m *incoming) {
	if m.held > 0 {
		c.budget.Give(c.Party(), m.held)
		m.held = 0
		c.counted--
	}
}

// Taken transfers the bytes counted for a message of this size to the call that
// carries it out. It returns 0 if none are counted.
func (c *Intake) Taken(size int) int {
	if size <= StreamWindow {
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
func (c *Intake) begin(f *frameReader) error {
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
	case frameData: // an empty one takes no memory
		if m := c.streams[f.stream]; m != nil && f.size > 0 {
			if m.frames++; m.frames > freeFrames+m.arrived()/leastFrame {
				return errSmallFrames
			}
		}
	}
	return nil
}

// arrived returns how many bytes of the message have arrived.
func (m *incoming) arrived() uint32 {
	if m.have < prefixBytes {
		return 0
	}
	return m.size - m.left
}

// data implements frameSink. p is a part of a sequence of messages.
func (c *Intake) data(stream uint32, p []byte) {
	m := c.streams[stream]
	for m != nil && len(p) > 0 {
		if m.have < prefixBytes {
			n := copy(m.prefix[m.have:], p)
			m.have, p = m.have+n, p[n:]
			if m.have == prefixBytes {
				c.release(m) // of the previous message, unless its call has taken it
				m.size = binary.BigEndian.Uint32(m.prefix[1:])
				m.left, m.done = m.size, false
				if m.size > StreamWindow && m.size <= c.limit {
					c.wanted = append(c.wanted, m)
				}
			}
		} else {
			n := min(uint32(len(p)), m.left) //nolint:gosec // a read is small
			m.left, p = m.left-n, p[n:]
		}
		if m.have == prefixBytes && m.left == 0 {
			m.have, m.frames, m.done = 0, 0, true
		}
	}
}

// sent is an Intake as the sink of outgoing frames.
type sent Intake

// begin implements frameSink.
func (c *sent) begin(f *frameReader) error {
	if f.kind == frameReset || (f.kind == frameHeaders && f.flags&flagEndStream != 0) {
		(*Intake)(c).end(f.stream)
	}
	return nil
}

// data implements frameSink.
func (*sent) data(uint32, []byte) {}
