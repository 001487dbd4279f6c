package wakebell

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/wakebell/wakebell/actors"
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
	ContentType   string // of Raw; empty: none was given
	ReplyTo       string
	Headers       Headers

	// Raw is the body as it travelled. It must not be modified.
	Raw []byte

	delivery *actors.Delivery // nil in a Timer that no System made
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
	return m.delivery.Settle(ctx, verdict(err))
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
}

// Handle has fn called for every timer of the topic that is due, by up to
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
	var errs []error
	for i, opt := range opts {
		if opt == nil {
			errs = append(errs, invalid("option", "number %d is nil", i))
			continue
		}
		errs = append(errs, opt(&h.set))
	}
	h.err = errors.Join(errs...)
	return h
}

// settings are a handler's options with their defaults.
type settings struct {
	maxConcurrent       int
	leaseTTL, maxAge    time.Duration
	polling, maxPolling time.Duration
	retryInitial        time.Duration
	retryMax            time.Duration
	maxAttempts         int
	discardRejected     bool
	retryOnExpiry       bool
	middleware          []Middleware
	target              *actors.Target
}

func defaultSettings() settings {
	return settings{
		maxConcurrent: 5,
		leaseTTL:      30 * time.Second,
		polling:       50 * time.Millisecond,
		maxPolling:    5 * time.Second,
		retryInitial:  time.Second,
		retryMax:      time.Hour,
		maxAttempts:   25,
	}
}

// HandlerOption configures the delivery of one topic. A wrong one makes New
// fail with ErrInvalid.
type HandlerOption func(*settings) error

// MaxConcurrent is how many timers of the topic this node handles at once,
// 1 – 10,000; default 5.
func MaxConcurrent(n int) HandlerOption {
	return func(s *settings) error {
		s.maxConcurrent = n
		return within("MaxConcurrent", n, 1, 10_000)
	}
}

// LeaseTTL is how long a crashed node keeps its timers from the others,
// 100 ms – 24 h; default 30 s. While a handler runs, its lease is extended at
// a third of it.
func LeaseTTL(d time.Duration) HandlerOption {
	return func(s *settings) error {
		s.leaseTTL = d
		return within("LeaseTTL", d, 100*time.Millisecond, 24*time.Hour)
	}
}

// MaxLeaseAge ends a handler that runs longer: its context ends with
// ErrLeaseTooOld, its slot is freed, and the timer is retried as after an
// error. 0 – 30 days; default 0, which is off.
func MaxLeaseAge(d time.Duration) HandlerOption {
	return func(s *settings) error {
		s.maxAge = d
		return within("MaxLeaseAge", d, 0, 30*24*time.Hour)
	}
}

// PollingInterval is the first delay of the idle backoff, 1 ms – 1 h; default
// 50 ms. It matters for timers that Python peers schedule: they send no hints.
func PollingInterval(d time.Duration) HandlerOption {
	return func(s *settings) error {
		s.polling = d
		return within("PollingInterval", d, time.Millisecond, time.Hour)
	}
}

// MaxPollingInterval caps the idle backoff, 1 ms – 1 h; default 5 s. After
// ±50 % of jitter a look may come up to 1.5 × as late.
func MaxPollingInterval(d time.Duration) HandlerOption {
	return func(s *settings) error {
		s.maxPolling = d
		return within("MaxPollingInterval", d, time.Millisecond, time.Hour)
	}
}

// RetryBackoff is the delay after the first failure, and the cap up to which
// it doubles with each further one; each varies by ±20 %. 1 ms – 30 days;
// default 1 s and 1 h.
func RetryBackoff(initial, limit time.Duration) HandlerOption {
	return func(s *settings) error {
		s.retryInitial, s.retryMax = initial, limit
		const most = 30 * 24 * time.Hour
		if err := within("RetryBackoff initial", initial, time.Millisecond, most); err != nil {
			return err
		}
		return within("RetryBackoff limit", limit, initial, most)
	}
}

// MaxAttempts is the failure at which a timer becomes a dead letter,
// 1 – 1,000,000; default 25. Deliveries that end without a verdict (crashes)
// have a cap of their own, 10 above it.
func MaxAttempts(n int) HandlerOption {
	return func(s *settings) error {
		s.maxAttempts = n
		return within("MaxAttempts", n, 1, 1_000_000)
	}
}

// DiscardRejected removes rejected timers, as faststream-redis-timers does,
// instead of keeping them as dead letters.
func DiscardRejected() HandlerOption {
	return func(s *settings) error {
		s.discardRejected = true
		return nil
	}
}

// RetryOnLeaseExpiry leaves a timer whose handler failed to its lease, as
// faststream-redis-timers does: it comes back when the lease ends, and the
// failure is not counted. What bounds it is the cap on deliveries without a
// verdict, 10 above MaxAttempts. RetryIn and Reject work as ever.
func RetryOnLeaseExpiry() HandlerOption {
	return func(s *settings) error {
		s.retryOnExpiry = true
		return nil
	}
}

func within[N ~int | ~int64](field string, n, low, high N) error {
	if n < low || n > high {
		return invalid(field, "%v is not within %v and %v", n, low, high)
	}
	return nil
}

// neverSettledSlack is how many deliveries without a verdict a timer survives
// beyond MaxAttempts: some are not its fault (a node that was killed).
const neverSettledSlack = 10

func (s settings) maxClaims() int { return min(s.maxAttempts, math.MaxInt32) + neverSettledSlack }
