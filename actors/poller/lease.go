package poller

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
)

// lease is a claimed timer from its claim to its settlement. Only the poller
// touches it, but for ctx and worker, which it shares with the handler.
type lease struct {
	Delivery
	ctx leaseContext

	stream *stream
	slot   int // index in stream.held; -1 once the handler is done with it

	// confirmed is when the claim or the last confirmed extension was sent;
	// deadline is when the lease ends by the local clock, counted from there.
	// Invariant: confirmed < deadline.
	confirmed, deadline time.Time
	queued              time.Time // when it was offered to the handlers
	deliveredAt         time.Time // its age counts from here

	settled   bool // by its handler, which goes on
	extending bool // an extension is in flight
	verify    bool // extend at once: a hint says that it may be gone

	// gone says why the source no longer takes our word for this lease, or 0.
	refused exchange.Why

	// ended says that ctx has been ended, whatever the cause.
	ended bool

	extendWaiters []chan<- error  // told when the next extension is confirmed
	forwarded     *ForwardedLease // told as well; nil: it did not ask

	// good is deadline for other goroutines, as the time since began.
	sharedDeadline atomic.Int64

	// worker runs the handler; nil until it has begun.
	worker atomic.Pointer[worker]
}

// began is an instant that deadlines are counted from.
var baseInstant = time.Now()

// until is the deadline; any goroutine may ask for it.
func (l *lease) localDeadline() time.Time {
	return baseInstant.Add(time.Duration(l.sharedDeadline.Load()))
}

// end ends the handler's context with cause. Only the first cause counts.
func (l *lease) end(cause error) {
	if l.ended {
		return
	}
	l.ended = true
	l.ctx.end(cause)
	l.confirmExtension(cause)
}

// leaseContext is a handler's context. Most handlers never ask for Done or a
// value, so what that costs is made when first asked for.
type leaseContext struct {
	parent context.Context

	mu     sync.Mutex
	inner  context.Context
	cancel context.CancelCauseFunc
	cause  error
}

var _ context.Context = (*leaseContext)(nil)

// Deadline reports none: a lease is extended for as long as its handler runs.
func (c *leaseContext) Deadline() (time.Time, bool) { return c.parent.Deadline() }

func (c *leaseContext) Done() <-chan struct{} { return c.materialize().Done() }

// Value also serves context.Cause, which asks for a key of its own.
func (c *leaseContext) Value(key any) any { return c.materialize().Value(key) }

func (c *leaseContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.inner != nil:
		return c.inner.Err()
	case c.cause != nil:
		return context.Canceled
	default:
		return c.parent.Err()
	}
}

func (c *leaseContext) materialize() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner == nil {
		c.inner, c.cancel = context.WithCancelCause(c.parent)
		if c.cause != nil {
			c.cancel(c.cause)
		}
	}
	return c.inner
}

// end ends the context with cause; the first cause counts.
func (c *leaseContext) end(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == nil {
		c.cause = cause
	}
	if c.cancel != nil {
		c.cancel(c.cause)
	}
}

// endedBy is the cause that the poller gave; nil: it gave none.
func (c *leaseContext) endedBy() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(c.cause, context.Canceled) { // the handler has returned
		return nil
	}
	return c.cause
}
