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
// accesses it, except for ctx and the atomic fields.
type lease struct {
	Delivery
	ctx leaseContext

	stream *stream
	slot   int // index in stream.held; -1 once the handler is done

	// confirmed is when the claim or the last confirmed extension was sent;
	// deadline is when the lease expires by the local clock, counted from there.
	// Invariant: confirmed < deadline.
	confirmed, deadline time.Time
	granted             time.Time // when its token was given out, by the source's clock
	queued              time.Time // when it was pushed to the run queue
	deliveredAt         time.Time // its age counts from here
	early               bool      // it waits for its instant, see early.go

	generation uint64 // of the breaker when it was claimed

	settled   bool // by its handler, which continues
	extending bool // an extension is in flight
	verify    bool // extend it at once: a hint says that it may have ended

	// refused is why the source no longer accepts this lease; 0: it does.
	refused exchange.RefusalReason

	// ended reports that ctx has ended, for any cause.
	ended bool

	extendWaiters []chan<- error  // receive the result of the next extension
	forwarded     *ForwardedLease // notified of it as well; nil: not requested

	// sharedDeadline is deadline for other goroutines, as the duration since
	// baseInstant.
	sharedDeadline atomic.Int64

	// worker runs the handler; nil until the handler has begun.
	worker atomic.Pointer[worker]

	// batch is the call that the lease is part of; nil: it is handled alone.
	batch     atomic.Pointer[batch]
	lostBatch atomic.Bool // the batch knows that ctx has ended
	answered  atomic.Bool // by the target of a batch that waits for other answers
}

// baseInstant is the instant that shared deadlines count from.
var baseInstant = time.Now()

// held names the lease to the source.
func (l *lease) held() exchange.Held {
	return exchange.Held{ID: l.ID, Token: l.Token, Granted: l.granted}
}

// localDeadline returns the deadline; any goroutine may call it.
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
	if b := l.batch.Load(); b != nil {
		b.lost(l, cause)
	}
	l.confirmExtension(cause)
}

// leaseContext is a handler's context. Most handlers never use Done or a value,
// so the context behind it is created when first used.
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

// endedBy returns the cause that the poller gave; nil: none.
func (c *leaseContext) endedBy() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(c.cause, context.Canceled) { // the handler has returned
		return nil
	}
	return c.cause
}

// countHeld notes how many leases this incarnation holds.
func (p *poller) countHeld() {
	held := 0
	for _, s := range p.streams {
		held += len(s.held)
	}
	p.Counters.Held.Store(int64(held))
}
