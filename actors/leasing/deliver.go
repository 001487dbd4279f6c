package leasing

import (
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

// deliver passes the leases of a reply to the handlers, or keeps those that were claimed
// early.
func (c *Core) deliver(now, received time.Time, f *Flight, r *exchange.Reply) {
	s := f.stream
	stale := now.After(f.Sent.Add(r.Remaining - c.LeaseTTL/2))
	out, kept := c.newHandOver(now), 0
	var run []*Lease // that others may follow, by their numbers; nil: none follows another
	if r.KeyRuns != nil {
		run = make([]*Lease, 1+len(r.Leases))
	}
	for i := range r.Leases {
		l := c.Effects.NewLease(&r.Leases[i], r.Now)
		l.Late, l.Queued, l.deliveredAt = r.Now.Sub(l.Activation), now, now
		l.stream, l.slot, l.generation = s, -1, f.generation
		if l.Fault != "" {
			if run != nil { // the next lease follows the one before this one
				run[i+1] = run[r.KeyRuns[i]]
			}
			s.toSettle = append(s.toSettle, Settlement{Lease: l, Kind: exchange.DeadLetter, Reason: l.Fault})
			continue
		}
		if c.drain != nil || c.paused || stale {
			c.release(l)
			continue
		}
		c.confirm(l, f.Sent, r.Remaining)
		if c.MaxLeaseAge > 0 {
			c.agenda.by(examine, now.Add(c.MaxLeaseAge))
		}
		l.grant(l.Token, f, r)
		s.hold(l)
		if f.checked(l.ID) {
			l.verify, s.extendDue = true, true
		}
		if in := f.early(l, r.Now); in > 0 {
			kept++
			c.keep(l, received, in)
			continue
		}
		if run != nil && c.follow(run, i+1, r.KeyRuns[i], l) {
			kept++
			continue
		}
		out.give(l)
	}
	out.end()
	c.noteClaimed(now, r, out.given+kept)
	if c.free() < c.prefetch.limit && c.agenda[excess].IsZero() { // some leases wait for a handler
		c.agenda[excess] = now.Add(MaxPrefetchWait)
	}
}

// handOver passes a series of leases to the handlers and counts them.
type handOver struct {
	c            *Core
	now          time.Time
	given, first int // leases, and those of them that begin for the first time
	late, latest time.Duration
	latenesses   wakebelltype.Latenesses
}

func (c *Core) newHandOver(now time.Time) handOver { return handOver{c: c, now: now} }

func (h *handOver) give(l *Lease) {
	l.deliveredAt, l.stream.deliveredAt = h.now, h.now
	if h.given == 0 {
		h.c.expectLongRun(h.now)
	}
	h.given++
	if l.Claims == 1 && !l.Snoozed {
		lateness := max(l.Late, 0)
		h.first, h.late, h.latest = h.first+1, h.late+lateness, max(h.latest, lateness)
		h.latenesses.Count(lateness, 1)
	}
	h.c.Effects.Push(l)
}

// end ends the series.
func (h *handOver) end() {
	h.c.Effects.Pushed(h.given)
	h.c.Counters.Delivered.Add(int64(h.given)) // before its part, see observe.Counters.Snapshot
	h.c.Counters.Repeated.Add(int64(h.given - h.first))
	h.c.Counters.CountLateness(h.first, h.late, h.latest, &h.latenesses)
}
