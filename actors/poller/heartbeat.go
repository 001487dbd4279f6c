package poller

import (
	"errors"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
)

// watchLeases looks at the held leases when one of them needs it: it ends the
// contexts of those that are over by the local clock, and notes which streams
// have some that are due for an extension.
func (p *poller) watchLeases(now time.Time) {
	if p.leasesAt.IsZero() || now.Before(p.leasesAt) {
		return
	}
	p.leasesAt = time.Time{}
	for _, s := range p.streams {
		for i := len(s.held) - 1; i >= 0; i-- {
			p.watchLease(s, s.held[i], now)
		}
	}
}

func (p *poller) watchLease(s *stream, l *lease, now time.Time) {
	if p.MaxLeaseAge > 0 {
		if l.worker.Load() == nil { // waits for a handler to be back
			l.deliveredAt = now
		}
		at := l.deliveredAt.Add(p.MaxLeaseAge)
		if !now.Before(at) {
			p.endHung(l)
			return
		}
		p.leasesAt = earlier(p.leasesAt, at)
	}
	if l.refused != 0 || l.ended || l.settled {
		return
	}
	if !now.Before(l.deadline) {
		p.leaseLost(l, "it ended before an extension was confirmed")
		l.end(ErrLeaseLost)
		return
	}
	if p.Target != nil { // extended only when the target asks for it
		p.leasesAt = earlier(p.leasesAt, l.deadline)
		return
	}
	heartbeat := l.confirmed.Add(p.LeaseTTL / 3)
	if now.Before(heartbeat) {
		p.leasesAt = earlier(p.leasesAt, heartbeat)
		return
	}
	s.extendDue = s.extendDue || !l.extending
	p.leasesAt = earlier(p.leasesAt, l.deadline)
}

// takeExtensions puts the leases that are due for an extension into f, and
// those that will be soon, so that they travel together from then on.
func (p *poller) takeExtensions(s *stream, f *flight, now time.Time) {
	if !s.extendDue {
		return
	}
	s.extendDue = false
	for _, l := range s.held {
		young := (p.Target != nil || now.Sub(l.confirmed) < p.LeaseTTL/6) && !l.verify
		if young || l.refused != 0 || l.ended || l.settled {
			continue
		}
		if len(f.extended) == maxSettle {
			s.extendDue = true // the rest goes with the next exchange
			break
		}
		l.verify, l.extending = false, true
		f.extended = append(f.extended, l)
		f.request.Extend = append(f.request.Extend, exchange.Held{ID: l.ID, Token: l.Token})
	}
}

// hung ends a handler at the maximum lease age and frees its slot: the timer
// is retried as after a failure, the goroutine is left to itself.
func (p *poller) endHung(l *lease) {
	p.Counters.hung.Add(1)
	p.Logger.Error("handler ended by the maximum lease age", "id", l.ID, "claims", l.Claims, "age", p.MaxLeaseAge)
	l.end(ErrLeaseTooOld)
	l.stream.drop(l)
	if l.refused == 0 && !l.settled {
		p.settle(l, Failed(ErrLeaseTooOld))
	}
	if w := l.worker.Load(); w != nil {
		p.root.Send(w.self, abandon{l})
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
