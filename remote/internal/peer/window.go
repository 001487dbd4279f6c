package peer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/limits"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	// Bytes reserved for a response until it is there: for a light request, and for a
	// heavy one, with bodies or many entries. The latter adapts to the size of the
	// stream's responses between the two bounds.
	lightAnswer                       = 4 << 10
	firstHeavy, leastHeavy, mostHeavy = 1 << 20, 64 << 10, 8 << 20

	// ReadTimeout is how long a peer may leave its responses unread while it sends more
	// requests.
	ReadTimeout = time.Minute

	// AnswerOverhead estimates the memory of a response, in bytes, besides its encoding.
	AnswerOverhead = 256
)

// ErrNotReading ends a stream whose peer sends requests and reads none of its
// responses.
var ErrNotReading = errors.New("the peer does not read its answers")

// ResponseWindow bounds the requested responses of a stream that have not been sent.
type ResponseWindow struct {
	Of *limits.Holder // nil: no bound

	mu      sync.Mutex
	light   int    // light requests without a response
	heavy   []int  // bytes reserved for each heavy request, oldest first
	queued  int    // bytes of responses that wait to be sent
	typical int    // bytes to reserve for a heavy request; 0: no response yet
	sends   uint64 // grows when responses are sent or dropped
}

// belong charges new requests to another holder.
func (d *ResponseWindow) belong(to *limits.Holder) {
	d.Clear()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Of = to
}

// Ask reserves room for the response to a request before the request is passed on,
// and waits until there is room, so that unread responses do not pile up. A request
// for a turn waits for any time, so nothing stays reserved for it: the gates bound
// the waiters.
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

// reserve waits for room and takes it. It fails if the stream has unread responses
// and the peer reads none of them for ReadTimeout.
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
		n = d.size(kind) // the typical size may have changed
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

// Answered replaces the reservation of a request by the size of its response. It
// returns false if there is no room. An Error needs none: it is small, and a request
// has at most one.
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
		// Twice the size, because the next one may be larger; it decays slowly.
		d.typical = max(2*size, d.typical-d.typical/8)
	}
	switch {
	case size <= lightAnswer: // it replaces the reservation
		d.Of.Force(size)
	case d.Of.Take(size) != nil:
		return false
	}
	d.queued += size
	return true
}

// Queue counts an Error that replaces a response without room.
func (d *ResponseWindow) Queue(size int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Of.Force(size)
	d.queued += size
}

// Settle returns the reservation of an answered request. It is unknown which request
// an Error answers, but each response removes one request, so the sums agree in the
// end.
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

// Free returns the bytes of responses that were sent.
func (d *ResponseWindow) Free(bytes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if bytes == 0 || d.Of == nil {
		return
	}
	d.sends++
	d.queued = max(d.queued-bytes, 0) // Clear may have come first
	d.Of.Give(bytes)
}

// Clear forgets all requests and responses: the peer does not receive them.
func (d *ResponseWindow) Clear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.light, d.heavy, d.queued = 0, nil, 0
	d.sends++
	if d.Of != nil {
		d.Of.Clear()
	}
}

// NoRoom returns the Error that replaces a response without room.
func NoRoom(answer any) *messages.Error {
	return instead(answer, messages.Failure(messages.Code_CODE_OVERLOADED, "the responses that wait to be read are too large; read them and retry"))
}

// TooLarge returns the response in place of one that no frame has room for. Sent nevertheless, that
// would end the link with all its requests, and again when it is asked for again.
func TooLarge(answer any, maxMessage int) *messages.Error {
	text := fmt.Sprintf("%v: the response does not fit into MaxMessage, %d bytes", wakebelltype.ErrTooLarge, maxMessage)
	return instead(answer, messages.Failure(messages.Code_CODE_TOO_LARGE, text))
}

func instead(answer any, fault *messages.Error) *messages.Error {
	if a, ok := answer.(messages.Answer); ok {
		fault.Request = a.GetRequest()
	}
	return fault
}

// TakeUnsent counts a message for subscribers. It returns false if the message is to
// be dropped.
func TakeUnsent(h *limits.Holder, kind string, size int) bool {
	if kind == wire.Extensions {
		return h.Take(size) == nil
	}
	h.Force(size)
	return true
}
