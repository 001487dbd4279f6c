package poller

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wakebell/wakebell/actors/leasing"
)

// lease is a claimed timer from its claim to its settlement: the delivery that its handler
// sees, the state that the core has of it, and what the two share. Only the poller accesses
// it, except for the delivery, ctx and the atomic fields.
type lease struct {
	Delivery
	core  leasing.Lease
	ctx   leaseContext
	queue *runQueue // of its incarnation

	waiting *waiting // who waits for the source; nil: nothing has waited yet

	// expires is when the lease expires by the local clock, as the duration since
	// baseInstant.
	expires atomic.Int64

	// worker runs the handler; nil until the handler has begun.
	worker atomic.Pointer[worker]

	// batch is the call that the lease is part of; nil: it is handled alone.
	batch     atomic.Pointer[batch]
	lostBatch atomic.Bool // the batch knows that ctx has ended
	answered  atomic.Bool // by the target of a batch that waits for other answers

	kept atomic.Pointer[any] // by Delivery.Keep; nil: nothing
}

// waiting is who waits for what the source says about a lease.
type waiting struct {
	extended  []chan<- error  // receive the result of the next extension
	forwarded *ForwardedLease // notified of it as well; nil: not requested
	settled   chan<- error    // receives the result of the settlement; nil: no caller waits
}

var _ leasing.Run = (*lease)(nil)

// baseInstant is the instant that shared deadlines count from.
var baseInstant = time.Now()

// deadline is when the lease expires by the local clock; any goroutine may call it.
func (l *lease) deadline() time.Time {
	return baseInstant.Add(time.Duration(l.expires.Load()))
}

// Expires implements leasing.Run.
func (l *lease) Expires(deadline time.Time) { l.expires.Store(int64(deadline.Sub(baseInstant))) }

// Begun implements leasing.Run.
func (l *lease) Begun() (begun bool, at time.Time) {
	begun = l.worker.Load() != nil
	if b := l.batch.Load(); b != nil {
		at = b.began
	}
	return begun, at
}

// Awaits implements leasing.Run.
func (l *lease) Awaits() bool { return l.queue.forwards && !l.answered.Load() }

// End implements leasing.Run.
func (l *lease) End(cause error) {
	l.ctx.end(cause)
	if b := l.batch.Load(); b != nil {
		b.lost(l, cause)
	}
}

// Cause implements leasing.Run.
func (l *lease) Cause() error { return l.ctx.endedBy() }

// Hung implements leasing.Run.
func (l *lease) Hung() bool {
	b := l.batch.Load()
	return b != nil && b.hung
}

// Abandon implements leasing.Run: its handler actor leaves the worker and starts another.
func (l *lease) Abandon() (first bool) {
	first = true
	if b := l.batch.Load(); b != nil {
		first, b.hung = !b.hung, true
		l.queue.freeSlot(b)
	}
	if w := l.worker.Load(); w != nil {
		w.toHandler(abandon{l})
	}
	return first
}

// Extended implements leasing.Run.
func (l *lease) Extended(err error) {
	w := l.waiting
	for _, answer := range w.extended {
		answer <- err
	}
	if w.forwarded != nil && err == nil {
		w.forwarded.sink.Extended(w.forwarded)
	}
	w.extended, w.forwarded = nil, nil
}

// Settled implements leasing.Run.
func (l *lease) Settled(err error) {
	l.waiting.settled <- err
	l.waiting.settled = nil
}

// Messages of a handler's goroutine to its poller. Answers never block: they
// have room for the one error that is sent.
type (
	settleNow struct {
		lease   *lease
		outcome Outcome
		answer  chan<- error
	}
	extendNow struct {
		lease     *lease
		answer    chan<- error // nil: forwarded receives the answer
		forwarded *ForwardedLease
	}
)

// Settle settles a delivery while its handler continues, and returns once the
// source has confirmed it. The outcome that the handler returns later is ignored.
// Errors: ErrSettled, ErrSuperseded, or the reason why the handler no longer has
// the lease. ctx bounds the wait, not the settlement.
func (d *Delivery) Settle(ctx context.Context, o Outcome) error {
	return d.ask(ctx, func(answer chan<- error) any { return settleNow{d.lease, o, answer} })
}

// Extend extends the lease at once, and returns when the source has confirmed it.
// Errors are those of Settle. Leases are extended automatically; Extend is for
// handlers that must be sure of the lease before a step that must not run twice.
func (d *Delivery) Extend(ctx context.Context) error {
	return d.ask(ctx, func(answer chan<- error) any { return extendNow{lease: d.lease, answer: answer} })
}

func (d *Delivery) ask(ctx context.Context, message func(chan<- error) any) error {
	answer := make(chan error, 1)
	d.lease.queue.toPoller(message(answer))
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-d.lease.queue.ctx.Done():
		return ErrStopped
	}
}

func (p *poller) settleNow(m settleNow, now time.Time) {
	w := m.lease.waits()
	earlier := w.settled
	w.settled = m.answer
	if err := p.core.Settle(now, &m.lease.core, leasing.Outcome(m.outcome)); err != nil {
		w.settled = earlier // may still wait
		m.answer <- err
	}
}

func (p *poller) extendNow(m extendNow) {
	w, err := m.lease.waits(), p.core.Extend(&m.lease.core)
	switch {
	case err != nil && m.answer != nil:
		m.answer <- err
	case err != nil:
	case m.forwarded != nil:
		w.forwarded = m.forwarded
	default:
		w.extended = append(w.extended, m.answer)
	}
}

func (l *lease) waits() *waiting {
	if l.waiting == nil {
		l.waiting = &waiting{}
	}
	return l.waiting
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
