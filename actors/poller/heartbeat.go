package poller

import (
	"context"
	"slices"
	"time"
)

// watchLeases examines the held leases when one of them needs it: it ends the
// contexts of those that have expired by the local clock, and notes which streams
// have leases to extend.
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
		if l.worker.Load() == nil { // waits for a handler to restart
			l.deliveredAt = now
		}
		at := l.deliveredAt.Add(p.MaxLeaseAge)
		if b := l.batch.Load(); !now.Before(at) || b != nil && b.hung {
			p.endHung(l)
			return
		}
		p.leasesAt = earlier(p.leasesAt, at)
	}
	if l.refused != 0 || l.ended || l.settled {
		return
	}
	if !now.Before(l.deadline) {
		if !p.awaited(l) {
			p.Counters.HeartbeatsFailed.Add(1)
		}
		p.leaseLost(l, "expired before an extension was confirmed")
		l.end(ErrLeaseLost)
		return
	}
	if p.awaited(l) {
		p.leasesAt = earlier(p.leasesAt, l.deadline)
		if p.Batch.Size > 0 { // it may have its answer then
			p.leasesAt = earlier(p.leasesAt, now.Add(p.LeaseTTL/3))
		}
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

// awaited reports whether a lease waits for the answer of a target: until then it is
// extended only at the target's request.
func (p *poller) awaited(l *lease) bool { return p.Target != nil && !l.answered.Load() }

// takeExtensions adds the leases that are due for an extension to f, and those
// that will be soon, so that they are extended together from then on.
func (p *poller) takeExtensions(s *stream, f *flight, now time.Time) {
	if !s.extendDue {
		return
	}
	s.extendDue = false
	for _, l := range s.held {
		young := (p.awaited(l) || now.Sub(l.confirmed) < p.LeaseTTL/6) && !l.verify
		if young || l.refused != 0 || l.ended || l.settled {
			continue
		}
		if len(f.extended) == maxSettle {
			s.extendDue = true // the rest is part of the next exchange
			break
		}
		l.verify, l.extending = false, true
		f.extended = append(f.extended, l)
		f.request.Extend = append(f.request.Extend, l.held())
	}
}

// maxChecks bounds the ids that a flight notes; more stand for all.
const maxChecks = 100

// verifyLeases has the leases of a timer verified by an immediate extension; an
// empty id means all leases. A lease that an exchange in flight brings is verified then.
func (p *poller) verifyLeases(id string) {
	for _, s := range p.streams {
		for _, l := range s.held {
			if id == "" || id == l.ID {
				l.verify, s.extendDue = true, true
			}
		}
		if f := s.flight; f != nil && len(f.checks) <= maxChecks {
			f.checks = append(f.checks, id)
		}
	}
}

// checked reports whether a lease that the exchange brings must be verified.
func (f *flight) checked(id string) bool {
	return len(f.checks) > 0 && (len(f.checks) > maxChecks || slices.Contains(f.checks, "") || slices.Contains(f.checks, id))
}

// endHung ends a handler at the maximum lease age and frees its slot: the timer
// is retried as after a failure, and the goroutine is abandoned.
func (p *poller) endHung(l *lease) {
	p.Counters.Hung.Add(1)
	if b := l.batch.Load(); b == nil || p.endBatch(b) {
		p.Logger.Error("handler ended by the maximum lease age", "id", l.ID, "attempt", l.Claims, "age", p.MaxLeaseAge)
	}
	l.end(ErrLeaseTooOld)
	l.stream.drop(l)
	if l.refused == 0 && !l.settled {
		p.settle(l, Failed(ErrLeaseTooOld))
	}
	if w := l.worker.Load(); w != nil {
		p.root.Send(w.self, abandon{l})
	}
}

// Extend extends the lease at once, and returns when the source has confirmed it.
// Errors are those of Settle. Leases are extended automatically; Extend is for
// handlers that must be sure of the lease before a step that must not run twice.
func (d *Delivery) Extend(ctx context.Context) error {
	return d.ask(ctx, func(answer chan<- error) any { return extendNow{lease: d.lease, answer: answer} })
}

type extendNow struct {
	lease     *lease
	answer    chan<- error // nil: forwarded receives the answer
	forwarded *ForwardedLease
}

func (p *poller) extendNow(m extendNow) {
	l := m.lease
	if err := l.checkHeld(); err != nil {
		if m.answer != nil {
			m.answer <- err
		}
		return
	}
	if m.forwarded != nil {
		l.forwarded = m.forwarded
	} else {
		l.extendWaiters = append(l.extendWaiters, m.answer)
	}
	l.verify, l.stream.extendDue = true, true
}

// confirmExtension answers the callers that wait for the lease's extension.
func (l *lease) confirmExtension(err error) {
	for _, answer := range l.extendWaiters {
		answer <- err
	}
	l.extendWaiters = nil
	if l.forwarded != nil && err == nil {
		l.forwarded.sink.Extended(l.forwarded)
	}
	l.forwarded = nil
}
