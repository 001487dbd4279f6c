package poller

import (
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

// deliver passes the leases of a reply to the handlers, or keeps those that were claimed
// early.
func (p *poller) deliver(s *stream, f *flight, r *exchange.Reply, received time.Time) {
	now := time.Now()
	stale := now.After(f.sent.Add(r.Remaining - p.LeaseTTL/2))
	out, kept := newHandOver(p, now), 0
	for i := range r.Leases {
		l := &lease{Delivery: Delivery{Lease: r.Leases[i], Topic: p.Name(), Claimed: r.Now, LeaseTTL: p.LeaseTTL, MaxFailures: p.Retry.MaxFailures}, queued: now, deliveredAt: now}
		l.lease, l.stream, l.slot, l.generation = l, s, -1, f.generation
		if l.Fault != "" {
			s.toSettle = append(s.toSettle, verdict{lease: l, kind: exchange.DeadLetter, reason: l.Fault})
			continue
		}
		if p.drain != nil || p.paused || stale {
			p.releaseLease(l)
			continue
		}
		l.ctx.parent = p.queue.ctx
		p.confirm(l, f.sent, r.Remaining)
		if p.MaxLeaseAge > 0 {
			p.leasesAt = earlier(p.leasesAt, now.Add(p.MaxLeaseAge))
		}
		l.granted = f.granted(r)
		s.hold(l)
		if f.checked(l.ID) {
			l.verify, s.extendDue = true, true
		}
		if in := f.early(l, r.Now); in > 0 {
			kept++
			p.keep(l, received, in)
			continue
		}
		out.give(l)
	}
	out.end()
	p.noteClaimed(now, r, out.given+kept)
	if p.free() < p.prefetch.limit && p.prefetch.checkAt.IsZero() { // some leases wait for a handler
		p.prefetch.checkAt = now.Add(MaxPrefetchWait)
	}
}

// noteClaimed tells the division of the topic how many timers this node has claimed.
func (p *poller) noteClaimed(now time.Time, r *exchange.Reply, claimed int) {
	if p.division == nil {
		return
	}
	if p.division.Fallback(now) {
		p.Counters.FallbackDelivered.Add(int64(claimed))
	}
	var late time.Duration
	if len(r.Leases) > 0 && r.Leases[0].Claims == 1 {
		late = r.Now.Sub(r.Leases[0].Activation)
	}
	p.division.Claimed(now, claimed, late)
}

// handOver passes leases to the handlers and counts them.
type handOver struct {
	p            *poller
	now          time.Time
	collects     bool // events are collected one by one
	given, first int  // leases, and those of them that are a first attempt
	late, latest time.Duration
}

func newHandOver(p *poller, now time.Time) handOver {
	return handOver{p: p, now: now, collects: p.Feed.Collects()}
}

func (h *handOver) give(l *lease) {
	p := h.p
	l.deliveredAt, l.stream.deliveredAt = h.now, h.now
	h.given++
	if l.Claims > 1 {
		p.Counters.Repeated.Add(1)
	} else {
		lateness := max(l.Lateness(), 0)
		h.first, h.late, h.latest = h.first+1, h.late+lateness, max(h.latest, lateness)
	}
	if h.collects {
		p.emit(l, wakebelltype.Event{Kind: wakebelltype.EventDelivered, Lateness: l.Lateness()})
	}
	p.queue.push(l)
}

// end ends a series of leases.
func (h *handOver) end() {
	h.p.queue.pushed()
	h.p.Counters.Delivered.Add(int64(h.given))
	h.p.Counters.CountLateness(h.first, h.late, h.latest)
	if !h.collects {
		h.p.Feed.Miss(h.given)
	}
}
