package leasing

import (
	"errors"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Finished takes the outcome of a lease's handler.
func (c *Core) Finished(now time.Time, l *Lease, o Outcome) {
	c.prefetch.countFinished(l, now)
	if c.Batch.Size > 0 {
		l.begun()
	}
	if l.slot >= 0 { // otherwise it was ended as hung
		l.stream.drop(l)
		c.conclude(l, o, now)
	}
	if len(c.keyRuns.next) > 0 {
		c.passOn(now, l)
	}
}

// conclude turns a handler's outcome into a settlement, if it still applies.
func (c *Core) conclude(l *Lease, o Outcome, now time.Time) {
	switch cause := l.Run.Cause(); {
	case o.Kind == Panicked || o.Kind == Crashed:
		c.crashed(l, o, cause, now)
	case l.settled: // by the handler itself, with Settle
		if o.Kind = l.settledAs; c.concurrency.limiter != nil && o.Kind.Tells() {
			c.adaptConcurrency(now, l, o)
		}
	case l.refused != 0:
		// Counted when the source refused it; the lease has another owner.
	case errors.Is(cause, ErrDraining) && (o.Kind == Skipped || o.retries()):
		c.release(l)
	case o.Kind == Skipped:
		// Its context ended before a handler began.
	case o.Kind == Released && !errors.Is(cause, ErrLeaseLost):
		c.release(l)
	case errors.Is(cause, ErrLeaseLost) && (o.retries() || o.Kind == Released):
		// Interrupted by the loss, which is not a failure. The timer is due
		// again.
	default:
		c.settle(l, o, now)
	}
}

// crashed takes the outcome of a handler that did not return; cause is what ended its context,
// nil if nothing has. A panic counts as a failure at once, and the timer is due again when its
// lease would have expired. A panic after the context has ended says nothing about the timer,
// and the end of the actor with the lease may be that of its node: their leases expire.
func (c *Core) crashed(l *Lease, o Outcome, cause error, now time.Time) {
	if cause == nil {
		c.countOutcome(now, l, o)
	}
	if !c.FinalCrashes && o.Kind == Panicked && cause == nil && l.accepted() && !c.RetryOnLeaseExpiry {
		c.settle(l, o, now)    // counted when it is confirmed
		l.stream.urgent = true // until then only this process knows why
		return
	}
	c.Counters.Crashed.Add(1)
	c.endedBy(l, now, wakebelltype.EventCrashed, o.Reason)
	if c.FinalCrashes && l.accepted() {
		o.Kind = Crashed // a panic is not retried
		c.settle(l, o, now)
	}
}

// Settle settles a delivery while its handler continues, whose outcome is ignored then. The
// result comes to Run.Settled, unless an error says that the lease is not held any more.
func (c *Core) Settle(now time.Time, l *Lease, o Outcome) error {
	if err := l.checkHeld(); err != nil {
		return err
	}
	l.settled, l.settledAs = true, o.Kind
	l.begun()
	l.confirmExtension(ErrSettled)
	if !c.settle(l, o, now) { // left to its lease
		l.Run.Settled(nil)
		return nil
	}
	last := &l.stream.toSettle[len(l.stream.toSettle)-1]
	last.awaited, l.stream.urgent = true, true
	return nil
}

// settle queues the settlement of an outcome; false: it needs none.
func (c *Core) settle(l *Lease, o Outcome, now time.Time) bool {
	if o.Kind != Panicked && o.Kind != Crashed { // crashed has counted them
		c.countOutcome(now, l, o)
	}
	took := now.Sub(l.deliveredAt)
	if o.Kind == Failed && c.RetryOnLeaseExpiry {
		c.Counters.Retried.Add(1)
		c.Effects.Ended(l, End{Kind: wakebelltype.EventRetried, Why: o.Reason, Took: took, RetryIn: max(l.deadline.Sub(now), 0)})
		return false
	}
	if o.Kind == Snoozed && !c.Snoozes {
		o.Kind = FailedFor
	}
	v := Settlement{Lease: l, Kind: exchange.Ack, Reason: o.Reason, Began: l.deliveredAt, Took: took, Panicked: o.Kind == Panicked}
	switch o.Kind {
	case Crashed: // where leases do not expire
		v.Kind = exchange.Fail
	case Snoozed:
		v.Kind, v.Delay, v.Snoozed = exchange.Nack, o.Delay, true
	case Failed, FailedFor, Panicked:
		c.retry(&v, o, now)
	case Expired:
		v.Expired = true
	case ExpiredDead:
		v.Kind, v.Expired = exchange.DeadLetter, true
	case Undeliverable:
		v.Kind = exchange.DeadLetter
	case Rejected:
		v.Kind, v.rejected = exchange.DeadLetter, true
		if c.DiscardRejects {
			v.Kind = exchange.Ack
			c.Counters.Discarded.Add(1)
		}
	}
	if v.Kind == exchange.Fail {
		c.Counters.Discarded.Add(1)
	}
	s := l.stream
	l.passes = v.Kind != exchange.Nack
	s.toSettle = append(s.toSettle, v)
	s.urgent = s.urgent || len(s.toSettle) >= maxClaim
	s.settleBy = earlier(s.settleBy, l.deadline.Add(-c.LeaseTTL/3))
	return true
}

// retry makes v the settlement of a failure.
func (c *Core) retry(v *Settlement, o Outcome, now time.Time) {
	if c.FinalErrors && !v.Panicked {
		v.Kind = exchange.Fail
		c.Counters.FinalErrors.Add(1)
		return
	}
	v.Kind = exchange.Nack
	switch {
	case o.Kind == FailedFor:
		v.Delay = o.Delay
	case v.Panicked && !c.PanicBackoff:
		v.Delay = max(v.Lease.deadline.Sub(now), 0)
	default:
		v.Delay = c.Retry.delay(v.Lease.Failures, c.Random())
	}
	if v.Lease.Failures+1 >= c.Retry.MaxFailures {
		v.Kind, v.failed = exchange.DeadLetter, true
	}
}

// release returns a lease as if it had never been claimed.
func (c *Core) release(l *Lease) {
	l.stream.toSettle = append(l.stream.toSettle, Settlement{Lease: l, Kind: exchange.Release})
	l.stream.urgent = true // another node may run it
}

// answer answers the handler that waits for the settlement.
func (v *Settlement) answer() {
	switch {
	case !v.awaited:
	case v.Lease.refused != 0:
		v.Lease.Run.Settled(causeOf(v.Lease.refused))
	default:
		v.Lease.Run.Settled(nil)
	}
}
