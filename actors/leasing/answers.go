package leasing

import (
	"errors"
	"time"

	"github.com/wakebell/wakebell/internal/backoff"
	"github.com/wakebell/wakebell/messages/exchange"
)

// Answered processes the reply to an exchange, which the source gave at received by the local
// clock.
func (c *Core) Answered(now, received time.Time, f *Flight, r *exchange.Reply) {
	s := f.stream
	s.flight, s.failures, s.err = nil, 0, nil
	s.unsettled = s.unsettled && !f.complete
	c.reserved -= f.Request.Want
	c.share.refund(f.Request.Want - len(r.Leases))
	if c.controlAnswered(now, r) && len(r.Leases) == 0 {
		f.Request.Want = 0 // it was no claim
	}
	c.Counters.Exchanges.Add(1)
	c.redisAnswered(f)
	c.countSettled(now, f, r)
	c.reportDeadLetters(f, r)
	c.extensionsAnswered(now, f, r)
	c.deliver(now, received, f, r)
	c.openWindow(s, f, len(r.Leases), now)
	c.plan(now, f, r)
}

// countSettled counts the settlements of f by their results and answers the
// handlers that wait for one.
func (c *Core) countSettled(now time.Time, f *Flight, r *exchange.Reply) {
	for _, refusal := range r.Refused {
		if i := refusal.Index; i < len(f.Settling) {
			c.leaseRefused(f.Settling[i].Lease, now, refusal.Reason)
		}
	}
	for i := range f.Settling {
		v := &f.Settling[i]
		v.answer()
		if v.Lease.refused != 0 {
			continue
		}
		if v.Expired {
			c.Counters.Expired.Add(1)
		}
		switch v.Kind {
		case exchange.Ack:
			if v.Expired {
				continue
			}
			c.Counters.Acked.Add(1)
			if v.rejected {
				c.Counters.RejectedAcks.Add(1)
			}
		case exchange.Nack:
			switch {
			case v.Panicked:
				c.Counters.Crashed.Add(1)
			case v.Snoozed:
				c.Counters.Snoozed.Add(1)
			default:
				c.Counters.Retried.Add(1)
			}
		case exchange.DeadLetter: // counted from the reply
		case exchange.Fail: // counted when the handler returned
		case exchange.Release:
			c.Counters.Released.Add(1)
		}
	}
	if len(f.Settling) > 0 {
		c.Effects.Settled(f)
	}
}

// reportDeadLetters passes on the timers that the exchange dead-lettered, by a settlement or
// because their claims were used up.
func (c *Core) reportDeadLetters(f *Flight, r *exchange.Reply) {
	for _, d := range r.DeadLettered {
		var v *Settlement
		c.Counters.DeadLettered.Add(1) // before its parts, see observe.Counters.Snapshot
		switch {
		case d.Index >= 0 && d.Index < len(f.Settling):
			v = &f.Settling[d.Index]
			d.Reason, d.Payload = v.Reason, v.Lease.stored()
			if v.rejected {
				c.Counters.Rejected.Add(1)
			}
			if v.Expired {
				c.Counters.ExpiredDead.Add(1)
			}
		case d.Reason == exchange.PayloadMissing:
			c.Counters.PayloadsMissing.Add(1)
		}
		c.Effects.DeadLettered(d, v)
	}
}

// extensionsAnswered gives the extended leases of f their new token and expiry.
func (c *Core) extensionsAnswered(now time.Time, f *Flight, r *exchange.Reply) {
	for _, refusal := range r.Refused {
		if i := refusal.Index - len(f.Settling); i >= 0 && i < len(f.extended) {
			if refusal.Reason == exchange.Lost {
				c.Counters.HeartbeatsFailed.Add(1)
			}
			c.leaseRefused(f.extended[i], now, refusal.Reason)
		}
	}
	for _, l := range f.extended {
		l.extending = false
		if l.refused != 0 {
			continue
		}
		if r.Extended != "" {
			l.grant(r.Extended, f, r)
		}
		c.confirm(l, f.Sent, r.Remaining)
		if !l.verify { // otherwise it was requested after f was sent
			l.confirmExtension(nil)
		}
	}
}

// plan decides when to poll next.
func (c *Core) plan(now time.Time, f *Flight, r *exchange.Reply) {
	sent := f.Sent
	if !r.Sent.IsZero() {
		sent = r.Sent
	}
	next, held := r.Next, c.pace.hold(sent, r.Now, r.Held)
	if held && f.Request.Want > len(r.Leases) {
		c.Counters.Throttled.Add(1)
	}
	c.Counters.KeyThrottled.Add(int64(r.KeyHeld))
	if held && next == 0 {
		next = r.Held
	}
	switch {
	case len(r.Leases) > 0:
		c.emptyClaims = 0
		c.pace.found()
	case f.Request.Want > 0:
		next = c.planAfterNone(now, f, r, next)
	}
	c.head.claimAnswered(r)
	c.pace.plan(sent, f.hintsSeen, r.Now, next, c.earlyLead(f.stream, len(r.Leases), next))
	if r.Orphans || c.orphans.held {
		c.removeOrphans(now)
	}
}

// planAfterNone returns when a claim that brought no timer is repeated, given that a timer is
// due in next.
func (c *Core) planAfterNone(now time.Time, f *Flight, r *exchange.Reply, next time.Duration) time.Duration {
	if len(f.Settling)+len(f.extended) == 0 {
		c.Counters.Empty.Add(1)
	}
	if c.pace.emptyPoll(r.Now) && c.divider.Member != nil {
		c.divider.Lost(now, f.overdue)
	}
	if next != 0 || r.Healed > 0 || len(r.DeadLettered) > 0 {
		c.emptyClaims = 0
		return next
	}
	// Due by a rounding error, or not claimable: poll again soon, but not in
	// a hot loop.
	next = backoff.Exponential(time.Millisecond, c.emptyClaims, c.MaxPollingInterval)
	c.emptyClaims++
	return next
}

// Failed keeps the exchange, whose outcome is unknown, to send it again:
// if the source ran it, the source repeats its reply with the claimed leases. If
// not, the repeated exchange claims nothing: leases may have expired whose
// settlements are queued behind it.
func (c *Core) Failed(now time.Time, f *Flight, err error) {
	s := f.stream
	c.Counters.Errors.Add(1)
	c.Counters.HeartbeatsFailed.Add(int64(len(f.extended)))
	s.failures++
	s.err = err
	c.reserved -= f.Request.Want
	f.Request.Want, f.complete = 0, false
	for _, each := range c.streams {
		each.unsettled = true
	}
	c.redisFailed(now, f, err)
	switch {
	case errors.Is(err, exchange.ErrUnavailable):
		s.waiting = true
		return
	case errors.Is(err, exchange.ErrStale):
		// Another process uses this incarnation's name. The settlements are sent
		// again under a new name; those that were run are refused by their
		// tokens.
		s.incarnation, s.sequence = c.NewName(), 1
		f.Request.Incarnation, f.Request.Sequence = s.incarnation, s.sequence
		s.retryAt = now.Add(c.MaxPollingInterval)
	default:
		s.retryAt = now.Add(backoff.Jitter(backoff.Exponential(c.PollingInterval, s.failures-1, maxErrorDelay), 0.5, c.Random()))
	}
	c.Effects.ExchangeFailed(err, s.failures)
}

// maxErrorDelay is the longest backoff after errors of one topic.
const maxErrorDelay = 5 * time.Second
