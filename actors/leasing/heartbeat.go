package leasing

import (
	"slices"
	"time"
)

// confirm notes that a lease is good for remaining, counted from sent, which is
// before the source read its clock.
func (c *Core) confirm(l *Lease, sent time.Time, remaining time.Duration) {
	l.deadline, l.remaining = sent.Add(remaining), remaining
	l.Run.Expires(l.deadline)
	c.agenda.by(examine, earlier(sent.Add(c.LeaseTTL/3), l.deadline))
}

// examineLeases examines the held leases when one of them needs it: it ends the
// contexts of those that have expired by the local clock, and notes which streams
// have leases to extend.
func (c *Core) examineLeases(now time.Time) {
	if !c.agenda.due(examine, now) {
		return
	}
	c.agenda[examine] = time.Time{}
	for _, s := range c.streams {
		for i := len(s.held) - 1; i >= 0; i-- {
			if i < len(s.held) { // the rest of a key run may have been released
				c.examineLease(s, s.held[i], now)
			}
		}
	}
}

func (c *Core) examineLease(s *Stream, l *Lease, now time.Time) {
	if c.MaxLeaseAge > 0 {
		if !l.begun() { // waits for a handler to restart, or for others of its batch
			l.deliveredAt = now
		}
		at := l.deliveredAt.Add(c.MaxLeaseAge)
		if !now.Before(at) || l.Run.Hung() {
			c.endHung(l, now)
			return
		}
		c.agenda.by(examine, at)
	}
	if !l.accepted() || l.ended {
		return
	}
	awaits := !l.follows && l.Run.Awaits() // it is extended only at the request of a target that has it
	if !now.Before(l.deadline) {
		if !awaits {
			c.Counters.HeartbeatsFailed.Add(1)
		}
		c.leaseLost(l, now, "expired before an extension was confirmed")
		l.end(ErrLeaseLost)
		return
	}
	if awaits {
		c.agenda.by(examine, l.deadline)
		if c.Batch.Size > 0 { // it may have its answer then
			c.agenda.by(examine, now.Add(c.LeaseTTL/3))
		}
		return
	}
	heartbeat := l.confirmed().Add(c.LeaseTTL / 3)
	if now.Before(heartbeat) {
		c.agenda.by(examine, heartbeat)
		return
	}
	s.extendDue = s.extendDue || !l.extending
	c.agenda.by(examine, l.deadline)
}

// extends reports whether the next exchange of a stream extends a lease.
func (c *Core) extends(s *Stream, now time.Time) bool {
	if !s.extendDue {
		return false
	}
	for _, l := range s.held {
		if c.mayExtend(l, now) {
			return true
		}
	}
	return false
}

// mayExtend reports whether a lease is due for an extension, or will be soon: those are
// extended together from then on.
func (c *Core) mayExtend(l *Lease, now time.Time) bool {
	young := (!l.follows && l.Run.Awaits() || now.Sub(l.confirmed()) < c.LeaseTTL/6) && !l.verify
	return !young && l.accepted() && !l.ended
}

// takeExtensions adds the leases to f that may be extended.
func (c *Core) takeExtensions(s *Stream, f *Flight, now time.Time) {
	if !s.extendDue {
		return
	}
	s.extendDue = false
	bytes := 0
	for _, l := range s.held {
		if !c.mayExtend(l, now) {
			continue
		}
		if len(f.extended) == maxSettle || bytes >= maxHeldBytes {
			s.extendDue = true // the rest is part of the next exchange
			break
		}
		l.verify, l.extending, bytes = false, true, bytes+len(l.Token)
		f.extended = append(f.extended, l)
		f.Request.Extend = append(f.Request.Extend, l.held())
	}
}

// endHung ends a handler at the maximum lease age and frees its slot: the timer
// is retried as after a failure, and the goroutine is abandoned.
func (c *Core) endHung(l *Lease, now time.Time) {
	c.Counters.Hung.Add(1)
	l.end(ErrLeaseTooOld)
	l.stream.drop(l)
	if l.accepted() {
		c.settle(l, Outcome{Kind: Failed, Reason: ErrLeaseTooOld.Error()}, now)
	}
	c.passOn(now, l)
	if !l.Run.Abandon() {
		return
	}
	if c.Effects.Hung(l, now.Sub(l.deliveredAt)); c.Batch.Size > 0 {
		c.agenda[examine] = now // for those of its batch that this round has passed
	}
}

// Extend extends a lease at once. The result comes to Run.Extended, unless an error says that
// the lease is not held any more.
func (c *Core) Extend(l *Lease) error {
	if err := l.checkHeld(); err != nil {
		return err
	}
	l.awaited, l.verify, l.stream.extendDue = true, true, true
	return nil
}

// maxChecks bounds the ids that a flight notes; more stand for all.
const maxChecks = 100

// verifyLeases has the leases of a timer verified by an immediate extension; an
// empty id means all leases. A lease that an exchange in flight brings is verified then.
func (c *Core) verifyLeases(id string) {
	for _, s := range c.streams {
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
func (f *Flight) checked(id string) bool {
	return len(f.checks) > 0 && (len(f.checks) > maxChecks || slices.Contains(f.checks, "") || slices.Contains(f.checks, id))
}
