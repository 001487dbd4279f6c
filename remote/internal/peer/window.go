package peer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/limits"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

const (
	// What is reserved for the answer to a request until it is there: of a light
	// one, and of one with bodies or many lines. The latter follows the size of
	// the stream's answers between the other two bounds.
	lightAnswer                       = 4 << 10
	firstHeavy, leastHeavy, mostHeavy = 1 << 20, 64 << 10, 8 << 20

	// ReadTimeout is how long a peer may leave its answers unread while it asks for
	// more.
	ReadTimeout = time.Minute

	// AnswerOverhead is what an answer takes besides its encoding, about.
	AnswerOverhead = 256
)

// ErrNotReading ends a stream whose peer asks for more and reads none of its answers.
var ErrNotReading = errors.New("the peer does not read its answers")

// ResponseWindow are the answers that were asked for on a stream and have not been sent.
type ResponseWindow struct {
	Of *limits.Holder // nil: nobody asks on it

	mu      sync.Mutex
	light   int    // requests without an answer
	heavy   []int  // what is reserved for each heavy one, oldest first
	queued  int    // bytes of answers that wait to be sent
	typical int    // what is reserved for a heavy one; 0: none has come yet
	sends   uint64 // grows when answers are sent, or dropped
}

// belong has what is asked from now on counted for a holder.
func (d *ResponseWindow) belong(to *limits.Holder) {
	d.Clear()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Of = to
}

// Ask reserves room for the answer to a request, before it is passed on, and
// waits until there is some: what a peer does not read must not pile up here.
// Turns are waited for as long as it takes, so nothing stays reserved for those:
// the gates bound how many wait.
func (d *ResponseWindow) Ask(ctx context.Context, kind string) error {
	if !wire.IsAnswered[kind] || d.Of == nil {
		return nil
	}
	n, err := d.reserve(ctx, kind)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case wire.WaitsLong[kind]:
		d.Of.Give(n)
	case wire.Heavy[kind]:
		d.heavy = append(d.heavy, n)
	default:
		d.light++
	}
	return nil
}

func (d *ResponseWindow) size(kind string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case !wire.Heavy[kind]:
		return lightAnswer
	case d.typical == 0:
		return firstHeavy
	default:
		return min(max(d.typical, leastHeavy), mostHeavy)
	}
}

// reserve waits for room, and takes it. A stream that has answers to read and
// reads none of them for ReadTimeout is not waited for.
func (d *ResponseWindow) reserve(ctx context.Context, kind string) (int, error) {
	n := d.size(kind)
	full := d.Of.TakeOrWait(n)
	if full == nil {
		return n, nil
	}
	late := time.NewTicker(ReadTimeout)
	defer late.Stop()
	for before := d.sent(); full != nil; {
		select {
		case <-full:
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-late.C:
			now := d.sent()
			if now == before && d.unread() {
				return 0, ErrNotReading
			}
			before = now
		}
		n = d.size(kind) // answers that came meanwhile tell more
		full = d.Of.TakeOrWait(n)
	}
	return n, nil
}

func (d *ResponseWindow) sent() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sends
}

func (d *ResponseWindow) unread() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.queued > 0
}

// Answered counts an answer that waits to be sent, instead of what was reserved
// for it; false: there is no room for it. An Error needs none: it is small, and
// there is one for a request at most.
func (d *ResponseWindow) Answered(kind string, size int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Of == nil {
		return true
	}
	if !wire.EndsLongWait[kind] {
		d.Settle(kind)
	}
	if wire.Heavy[kind] {
		// Twice, because the next one may be larger; it is slow to forget.
		d.typical = max(2*size, d.typical-d.typical/8)
	}
	switch {
	case size <= lightAnswer: // it replaces what was reserved
		d.Of.Force(size)
	case d.Of.Take(size) != nil:
		return false
	}
	d.queued += size
	return true
}

// Queue counts an answer that takes the place of one without room.
func (d *ResponseWindow) Queue(size int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Of.Force(size)
	d.queued += size
}

// Settle gives back what was reserved for the request that is answered. Which
// one an Error answers is not known, nor does it matter in the end: each answer
// takes away one request.
func (d *ResponseWindow) Settle(kind string) {
	n := 0
	switch {
	case len(d.heavy) > 0 && (wire.Heavy[kind] || d.light == 0):
		n, d.heavy = d.heavy[0], d.heavy[1:]
	case d.light > 0:
		n = lightAnswer
		d.light--
	}
	d.Of.Give(n)
}

// Paid gives back what was taken for answers that were sent.
func (d *ResponseWindow) Free(bytes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if bytes == 0 || d.Of == nil {
		return
	}
	d.sends++
	d.queued = max(d.queued-bytes, 0) // they may be forgotten already
	d.Of.Give(bytes)
}

// Clear forgets all of them: the peer does not get them.
func (d *ResponseWindow) Clear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.light, d.heavy, d.queued = 0, nil, 0
	d.sends++
	if d.Of != nil {
		d.Of.Clear()
	}
}

// NoRoom is the answer instead of one that there is no room for.
func NoRoom(answer any) *messages.Error {
	fault := messages.Failure(messages.Code_CODE_OVERLOADED, "the answers that wait to be read are too large; read them and ask again")
	if a, ok := answer.(messages.Answer); ok {
		fault.Request = a.GetRequest()
	}
	return fault
}

// TakeUnsent counts a message for subscribers; false: it is to be dropped.
func TakeUnsent(h *limits.Holder, kind string, size int) bool {
	if kind == wire.Extensions {
		return h.Take(size) == nil
	}
	h.Force(size)
	return true
}
