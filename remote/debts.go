package remote

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/limits"
)

const (
	// What is reserved for the answer to a request until it is there: of a light
	// one, and of one with bodies or many lines. The latter follows the size of
	// the stream's answers between the other two bounds.
	lightAnswer                       = 4 << 10
	firstHeavy, leastHeavy, mostHeavy = 1 << 20, 64 << 10, 8 << 20

	// owedFor is how long a peer may leave its answers unread while it asks for
	// more.
	owedFor = time.Minute

	// answerOverhead is what an answer takes besides its encoding, about.
	answerOverhead = 256
)

var errNotReading = errors.New("the peer does not read its answers")

// debts are the answers that were asked for on a stream and have not been sent.
type debts struct {
	of *limits.Holder // nil: nobody asks on it

	mu      sync.Mutex
	light   int    // requests without an answer
	heavy   []int  // what is reserved for each heavy one, oldest first
	queued  int    // bytes of answers that wait to be sent
	typical int    // what is reserved for a heavy one; 0: none has come yet
	sends   uint64 // grows when answers are sent, or dropped
}

// belong has what is asked from now on counted for a holder.
func (d *debts) belong(to *limits.Holder) {
	d.clear()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.of = to
}

// ask reserves room for the answer to a request, before it is passed on, and
// waits until there is some: what a peer does not read must not pile up here.
// Turns are waited for as long as it takes, so nothing stays reserved for those:
// the gates bound how many wait.
func (d *debts) ask(ctx context.Context, kind string) error {
	if !isAnswered[kind] || d.of == nil {
		return nil
	}
	n, err := d.reserve(ctx, kind)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case waitsLong[kind]:
		d.of.Give(n)
	case heavy[kind]:
		d.heavy = append(d.heavy, n)
	default:
		d.light++
	}
	return nil
}

func (d *debts) size(kind string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case !heavy[kind]:
		return lightAnswer
	case d.typical == 0:
		return firstHeavy
	default:
		return min(max(d.typical, leastHeavy), mostHeavy)
	}
}

// reserve waits for room, and takes it. A stream that has answers to read and
// reads none of them for owedFor is not waited for.
func (d *debts) reserve(ctx context.Context, kind string) (int, error) {
	n := d.size(kind)
	full := d.of.TakeOrWait(n)
	if full == nil {
		return n, nil
	}
	late := time.NewTicker(owedFor)
	defer late.Stop()
	for before := d.sent(); full != nil; {
		select {
		case <-full:
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-late.C:
			now := d.sent()
			if now == before && d.unread() {
				return 0, errNotReading
			}
			before = now
		}
		n = d.size(kind) // answers that came meanwhile tell more
		full = d.of.TakeOrWait(n)
	}
	return n, nil
}

func (d *debts) sent() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sends
}

func (d *debts) unread() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.queued > 0
}

// answered counts an answer that waits to be sent, instead of what was reserved
// for it; false: there is no room for it. An Error needs none: it is small, and
// there is one for a request at most.
func (d *debts) answered(kind string, size int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of == nil {
		return true
	}
	if !endsLongWait[kind] {
		d.settle(kind)
	}
	if heavy[kind] {
		// Twice, because the next one may be larger; it is slow to forget.
		d.typical = max(2*size, d.typical-d.typical/8)
	}
	switch {
	case size <= lightAnswer: // it replaces what was reserved
		d.of.Force(size)
	case d.of.Take(size) != nil:
		return false
	}
	d.queued += size
	return true
}

// queue counts an answer that takes the place of one without room.
func (d *debts) queue(size int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.of.Force(size)
	d.queued += size
}

// settle gives back what was reserved for the request that is answered. Which
// one an Error answers is not known, nor does it matter in the end: each answer
// takes away one request.
func (d *debts) settle(kind string) {
	n := 0
	switch {
	case len(d.heavy) > 0 && (heavy[kind] || d.light == 0):
		n, d.heavy = d.heavy[0], d.heavy[1:]
	case d.light > 0:
		n = lightAnswer
		d.light--
	}
	d.of.Give(n)
}

// paid gives back what was taken for answers that were sent.
func (d *debts) paid(bytes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if bytes == 0 || d.of == nil {
		return
	}
	d.sends++
	d.queued = max(d.queued-bytes, 0) // they may be forgotten already
	d.of.Give(bytes)
}

// clear forgets all of them: the peer does not get them.
func (d *debts) clear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.light, d.heavy, d.queued = 0, nil, 0
	d.sends++
	if d.of != nil {
		d.of.Clear()
	}
}

// noRoom is the answer instead of one that there is no room for.
func noRoom(answer any) *messages.Error {
	fault := messages.Failure(messages.Code_CODE_OVERLOADED, "the answers that wait to be read are too large; read them and ask again")
	if a, ok := answer.(messages.Answer); ok {
		fault.Request = a.GetRequest()
	}
	return fault
}

// cut ends the connection from an address.
func (c *connections) cut(from net.Addr) {
	c.mu.Lock()
	conn := c.conns[from.String()]
	c.mu.Unlock()
	if conn != nil {
		_ = conn.Close() // it is over either way
	}
}
