package poller

import (
	"context"
	"errors"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

var (
	// ErrSuperseded says that the timer was scheduled again while its handler
	// ran: the handler's outcome no longer applies to it.
	ErrSuperseded = errors.New("timer scheduled again while its handler ran")
	// ErrSettled says that the delivery is already settled.
	ErrSettled = errors.New("delivery is settled already")
)

// Settle settles a delivery while its handler continues, and returns once the
// source has confirmed it. The outcome that the handler returns later is ignored.
// Errors: ErrSettled, ErrSuperseded, or the reason why the handler no longer has
// the lease. ctx bounds the wait, not the settlement.
func (d *Delivery) Settle(ctx context.Context, o Outcome) error {
	return d.ask(ctx, func(answer chan<- error) any { return settleNow{d.lease, o, answer} })
}

// Messages of a handler's goroutine to its poller. Answers never block: they
// have room for the one error that is sent.
type (
	settleNow struct {
		lease   *lease
		outcome Outcome
		answer  chan<- error
	}
)

func (d *Delivery) ask(ctx context.Context, message func(chan<- error) any) error {
	answer := make(chan error, 1)
	d.lease.stream.toPoller(message(answer))
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-d.lease.stream.ctx.Done():
		return ErrStopped
	}
}

func (p *poller) settleNow(m settleNow) {
	l := m.lease
	if err := l.checkHeld(); err != nil {
		m.answer <- err
		return
	}
	l.settled = true
	l.confirmExtension(ErrSettled)
	if !p.settle(l, m.outcome) { // left to its lease
		m.answer <- nil
		return
	}
	last := &l.stream.toSettle[len(l.stream.toSettle)-1]
	last.answer, l.stream.urgent = m.answer, true
}

// checkHeld returns nil while the handler may settle the lease.
func (l *lease) checkHeld() error {
	switch cause := l.ctx.endedBy(); {
	case l.settled:
		return ErrSettled
	case l.refused != 0:
		return causeOf(l.refused)
	case l.slot < 0 && cause == nil:
		return ErrSettled
	default:
		return cause
	}
}

// causeOf returns the error for a handler whose lease the source refused.
func causeOf(why exchange.RefusalReason) error {
	switch why {
	case exchange.Superseded:
		return ErrSuperseded
	case exchange.Cancelled:
		return ErrCancelled
	default:
		return ErrLeaseLost
	}
}

// collect takes the outcomes that have arrived.
func (p *poller) collect() {
	now := time.Now()
	done := p.queue.takeDone()
	for _, c := range done {
		p.prefetch.countFinished(c.lease, now)
		if c.lease.slot >= 0 { // otherwise it was ended as hung
			c.lease.stream.drop(c.lease)
			p.conclude(c.lease, c.outcome)
		}
	}
	clear(done) // the array is used again, and would hold the payloads until then
}

// conclude turns a handler's outcome into a settlement, if it still applies.
func (p *poller) conclude(l *lease, o Outcome) {
	cause := l.ctx.endedBy()
	switch {
	case o.kind == crashed:
		p.Counters.Crashed.Add(1)
		p.emitCrashed(l, o)
		if cause == nil {
			p.countOutcome(l, o)
		}
		if p.FinalCrashes && l.refused == 0 && !l.settled {
			p.settle(l, o)
		}
	case l.settled:
		// Settled by the handler itself, with Delivery.Settle.
	case l.refused != 0:
		// Counted when the source refused it; the lease has another owner.
	case errors.Is(cause, ErrDraining) && (o.kind == skipped || o.retries()):
		p.releaseLease(l)
	case o.kind == skipped:
		// Its context ended before a handler began.
	case o.kind == released && !errors.Is(cause, ErrLeaseLost):
		p.releaseLease(l)
	case errors.Is(cause, ErrLeaseLost) && (o.retries() || o.kind == released):
		// Interrupted by the loss, which is not a failure. The timer is due
		// again.
	default:
		p.settle(l, o)
	}
}

// settle queues the settlement of an outcome; false: it needs none.
func (p *poller) settle(l *lease, o Outcome) bool {
	if o.kind != crashed { // conclude has recorded it
		p.countOutcome(l, o)
	}
	if o.kind == failed && p.RetryOnLeaseExpiry {
		p.Counters.Retried.Add(1)
		p.emitLeftToLease(l, o)
		return false
	}
	v := verdict{lease: l, kind: exchange.Ack, reason: o.reason, took: p.took(l, o.kind == succeeded)}
	switch o.kind {
	case crashed: // where leases do not expire
		v.kind = exchange.Fail
	case failed, failedFor:
		if p.FinalErrors {
			v.kind = exchange.Fail
			p.Counters.FinalErrors.Add(1)
			break
		}
		v.kind, v.delay = exchange.Nack, o.delay
		if o.kind == failed {
			v.delay = p.Retry.delay(l.Failures, p.random())
		}
		if l.Failures+1 >= p.Retry.MaxFailures {
			v.kind, v.failed = exchange.DeadLetter, true
		}
	case undeliverable:
		v.kind = exchange.DeadLetter
	case rejected:
		v.kind, v.rejected = exchange.DeadLetter, true
		if p.DiscardRejects {
			v.kind = exchange.Ack
			p.Counters.Discarded.Add(1)
		}
	}
	if v.kind == exchange.Fail {
		p.Counters.Discarded.Add(1)
	}
	l.stream.toSettle = append(l.stream.toSettle, v)
	l.stream.urgent = l.stream.urgent || len(l.stream.toSettle) >= maxClaim
	l.stream.settleBy = earlier(l.stream.settleBy, l.deadline.Add(-p.LeaseTTL/3))
	return true
}

// releaseLease returns a lease as if it had never been claimed.
func (p *poller) releaseLease(l *lease) {
	l.stream.toSettle = append(l.stream.toSettle, verdict{lease: l, kind: exchange.Release})
	l.stream.urgent = true // another node may run it
}

// leaseLost notes that a lease expired while its handler ran.
func (p *poller) leaseLost(l *lease, why string) {
	p.Counters.Lost.Add(1)
	if skipped, ok := p.logLimit.Allow("lost " + p.Source.Name()); ok {
		p.Logger.Warn("lease lost", "id", l.ID, "attempt", l.Claims, "reason", why, "skipped", skipped)
	}
	p.emitKind(l, wakebelltype.EventLost)
	p.recordEnd(l, wakebelltype.EventLost, why)
}

// leaseRefused notes that the source no longer accepts a lease.
func (p *poller) leaseRefused(l *lease, why exchange.RefusalReason) {
	if l.refused != 0 {
		return
	}
	l.refused = why
	l.confirmExtension(causeOf(why))
	switch why {
	case exchange.Superseded: // the handler runs to its end
		p.Counters.Superseded.Add(1)
		p.emitKind(l, wakebelltype.EventSuperseded)
		p.recordEnd(l, wakebelltype.EventSuperseded, "")
	case exchange.Cancelled:
		p.Counters.Cancelled.Add(1)
		p.emitKind(l, wakebelltype.EventCancelled)
		p.recordEnd(l, wakebelltype.EventCancelled, "")
		l.end(ErrCancelled)
	case exchange.Lost:
		if !l.ended {
			p.leaseLost(l, "the source no longer knows it")
		}
		l.end(ErrLeaseLost)
	}
}
