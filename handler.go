package wakebell

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wakebell/wakebell/internal/envelope"
)

// Timer is what a handler gets.
type Timer[T any] struct {
	Body T
	Meta
}

// Meta is what a timer carries besides its body.
type Meta struct {
	ID    string
	Topic string // with its prefix

	// Activation is the instant the timer was scheduled for, over all retries.
	Activation time.Time
	// Delivered is Redis's clock when this delivery was claimed.
	Delivered time.Time
	// Attempt counts deliveries from 1, those that crashed included.
	Attempt int
	// Failures counts those that ended in an error.
	Failures int

	CorrelationID string // by default the id of the timer
	ContentType   string // of the body; empty: none was given
	ReplyTo       string
	Headers       Headers

	// Raw is the body as it travelled, whatever middleware made of it. It must not
	// be modified.
	Raw []byte

	delivery holder // nil in a Timer that no System delivered
}

// Lateness is how long after its activation the timer was delivered, by
// Redis's clock.
func (m Meta) Lateness() time.Duration { return m.Delivered.Sub(m.Activation) }

// Settle settles the timer as returning err would (nil: ack), while the
// handler goes on: for what should not be done again although there is more to
// do. It returns once Redis has confirmed it; what the handler returns later
// does not count. Errors: ErrSettled when it was settled before, ErrSuperseded,
// ErrCancelled or ErrLeaseLost when the timer is no longer the handler's, or
// ctx's, which ends the wait but not the settlement.
func (m Meta) Settle(ctx context.Context, err error) error {
	if m.delivery == nil {
		return errNoDelivery
	}
	return m.delivery.Settle(ctx, err)
}

// Extend extends the lease and returns once Redis has confirmed it. Leases are
// extended by themselves; Extend is for who must know that the timer is still
// theirs before a step that hurts when done twice. Errors are those of Settle.
func (m Meta) Extend(ctx context.Context) error {
	if m.delivery == nil {
		return errNoDelivery
	}
	return m.delivery.Extend(ctx)
}

var errNoDelivery = fmt.Errorf("%w: timer: no System delivered it", ErrInvalid)

// Headers are the headers that the scheduler gave, in order, without those
// that have a field in Timer.
type Headers []envelope.Header

// Get returns the value of a header and whether it is there.
func (h Headers) Get(key string) (value string, ok bool) {
	i := slices.IndexFunc(h, func(e envelope.Header) bool { return e.Key == key })
	if i < 0 {
		return "", false
	}
	return h[i].Value, true
}

// Map returns the headers as a new map.
func (h Headers) Map() map[string]string {
	m := make(map[string]string, len(h))
	for _, e := range h {
		m[e.Key] = e.Value
	}
	return m
}

// Handler ties a topic to a function. Handle makes it.
type Handler struct {
	topic string
	fn    HandlerFunc
	set   settings
	err   error

	// read reads what travels in a delivery; nil: the envelope of a timer.
	read func(payload []byte) (envelope.Envelope, error)
}

// Handle has fn called for every timer of a topic that is due, by up to
// MaxConcurrent goroutines at once. What fn returns is its verdict:
//
//	nil          the timer is done (ack)
//	Reject(err)  it becomes a dead letter at once
//	RetryIn(d)   it is tried again after d
//	any error    it is tried again after the topic's backoff (nack)
//
// A panic is a crash: it is logged, and the timer comes back when its lease
// ends. A body that is not a T becomes a dead letter without reaching fn. The
// context ends when the timer is no longer fn's; context.Cause says why. A
// timer may be delivered more than once, so fn should be idempotent.
func Handle[T any](topic Topic[T], fn func(context.Context, Timer[T]) error, opts ...HandlerOption) Handler {
	h := newHandler(topic.name, typed(topic.codec, fn), opts)
	if fn == nil {
		h.err = errors.Join(h.err, invalid("handler", "nil"))
	}
	return h
}

func newHandler(topic string, fn HandlerFunc, opts []HandlerOption) Handler {
	h := Handler{topic: topic, fn: fn, set: defaultSettings()}
	h.err = applyAll(&h.set, opts, HandlerOption.applyTopic)
	return h
}
