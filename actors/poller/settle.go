package poller

import (
	"context"
	"errors"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
)

var (
	// ErrSuperseded says that the timer was scheduled again while its handler
	// ran: what the handler settles no longer concerns it.
	ErrSuperseded = errors.New("timer scheduled again while its handler ran")
	// ErrSettled says that the delivery has been settled already.
	ErrSettled = errors.New("delivery is settled already")
)

// Settle settles a delivery while its handler goes on, and returns once the
// source has confirmed it. What the handler returns later does not count.
// Errors: ErrSettled, ErrSuperseded, or why the delivery is no longer the
// handler's; ctx bounds the wait, not the settlement.
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
	last.answer = m.answer
}

// standing is nil while the lease is the handler's to settle.
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

// causeOf is the error for a handler whose word the source refused.
func causeOf(why exchange.Why) error {
	switch why {
	case exchange.Superseded:
		return ErrSuperseded
	case exchange.Cancelled:
		return ErrCancelled
	default:
		return ErrLeaseLost
	}
}

// collect takes the outcomes that gathered.
func (p *poller) collect() {
	now := time.Now()
	for _, c := range p.queue.takeDone() {
		p.prefetch.countFinished(c.lease, now)
		if c.lease.slot >= 0 { // else it was given up as hung
			c.lease.stream.drop(c.lease)
			p.conclude(c.lease, c.outcome)
		}
	}
}

// conclude turns a handler's outcome into a settlement, if it still counts.
func (p *poller) conclude(l *lease, o Outcome) {
	cause := l.ctx.endedBy()
	switch {
	case o.kind == crashed:
		p.Counters.crashed.Add(1)
		p.emitCrashed(l, o)
		if p.FinalCrashes && l.refused == 0 && !l.settled {
			p.settle(l, o)
		}
	case l.settled:
		// By the handler itself, while it ran.
	case l.refused != 0:
		// Counted when we learnt of it; the timer is somebody else's.
	case errors.Is(cause, ErrDraining) && (o.kind == skipped || o.retries()):
		p.releaseLease(l)
	case o.kind == skipped:
		// Its context had ended before a handler began.
	case o.kind == released && !errors.Is(cause, ErrLeaseLost):
		p.releaseLease(l)
	case errors.Is(cause, ErrLeaseLost) && (o.retries() || o.kind == released):
		// Cut short by the loss: not a failure. It comes back by expiry.
	default:
		p.settle(l, o)
	}
}

// settle queues the settlement that o asks for; false: it asks for none.
func (p *poller) settle(l *lease, o Outcome) bool {
	if o.kind == failed && p.RetryOnLeaseExpiry {
		p.Counters.retried.Add(1)
		p.emitLeftToLease(l, o)
		return false
	}
	v := verdict{lease: l, kind: exchange.Ack, reason: o.reason(), took: p.took(l)}
	switch o.kind {
	case crashed: // where no lease brings it back
		v.kind = exchange.Fail
	case failed, failedFor:
		if p.FinalErrors {
			v.kind = exchange.Fail
			break
		}
		v.kind, v.delay = exchange.Nack, o.delay
		if o.kind == failed {
			v.delay = p.Retry.delay(l.Failures, p.random())
		}
		if l.Failures+1 >= p.Retry.MaxFailures {
			v.kind, v.failed = exchange.Bury, true
		}
	case undeliverable:
		v.kind = exchange.Bury
	case rejected:
		v.kind = exchange.Bury
		if p.DiscardRejects {
			v.kind = exchange.Ack
			p.Counters.discarded.Add(1)
		}
	}
	if v.kind == exchange.Fail {
		p.Counters.discarded.Add(1)
	}
	l.stream.toSettle = append(l.stream.toSettle, v)
	return true
}

// release gives a lease back as if it had never been claimed.
func (p *poller) releaseLease(l *lease) {
	l.stream.toSettle = append(l.stream.toSettle, verdict{lease: l, kind: exchange.Release})
}

// lost notes that a lease ended while its handler ran.
func (p *poller) leaseLost(l *lease, why string) {
	p.Counters.lost.Add(1)
	if skipped, ok := p.logLimit.Allow("lost " + p.Source.Name()); ok {
		p.Logger.Warn("lease lost", "id", l.ID, "claims", l.Claims, "why", why, "skipped", skipped)
	}
	p.emitKind(l, exchange.EventLost)
}

// refused takes the source's word that a lease is no longer ours.
func (p *poller) leaseRefused(l *lease, why exchange.Why) {
	if l.refused != 0 {
		return
	}
	l.refused = why
	l.confirmExtension(causeOf(why))
	switch why {
	case exchange.Superseded: // the handler runs to its end
		p.Counters.superseded.Add(1)
		p.emitKind(l, exchange.EventSuperseded)
	case exchange.Cancelled:
		p.Counters.cancelled.Add(1)
		p.emitKind(l, exchange.EventCancelled)
		l.end(ErrCancelled)
	case exchange.Lost:
		if !l.ended {
			p.leaseLost(l, "the source no longer knows it")
		}
		l.end(ErrLeaseLost)
	}
}
