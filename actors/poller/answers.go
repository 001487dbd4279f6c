package poller

import (
	"errors"
	"time"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/messages/exchange"
)

// answered takes the answer to an exchange, or the news that there is none.
func (p *poller) answered(m exchanged) {
	s, f := m.stream, m.flight
	if m.err != nil {
		p.failed(s, f, m.err)
		return
	}
	now := time.Now()
	p.clock = clock{source: m.reply.Now, local: now}
	s.flight, s.failures, s.err = nil, 0, nil
	s.behind = s.behind && !f.complete
	p.reserved -= f.request.Want
	p.Counters.exchanges.Add(1)
	p.Counters.lastExchange.Store(now.UnixNano())
	p.reached()
	p.watchClock(f.sent, m.received, m.reply.Now)
	p.settled(f, m.reply)
	p.buried(f, m.reply)
	p.extended(f, m.reply)
	p.deal(s, f, m.reply, now)
	p.plan(f, m.reply)
}

// reached notes that Redis answers, be it with an error of this topic alone.
func (p *poller) reached() {
	if p.unavailable || p.probing {
		p.unavailable, p.probing = false, false
		p.root.Send(p.parent, Available{p.Source.Shard()})
	}
}

// watchClock notices a step of the source's clock. Nothing depends on it here:
// leases end by the monotonic clock, and the source decides what is due.
func (p *poller) watchClock(sent, received, source time.Time) {
	if step := p.clockWatch.observe(sent, received, source); step != 0 {
		p.Counters.clockSteps.Add(1)
		p.Logger.Warn("the clock of redis has stepped: timers come as much sooner or later", "by", step.Round(time.Millisecond))
	}
}

// down has the supervisor know that Redis is down, and waits to be asked.
func (p *poller) down(err error) {
	p.unavailable, p.probing = true, false
	p.root.Send(p.parent, Unavailable{p.Source.Shard(), err})
}

// settled counts the settlements of f by what became of them.
func (p *poller) settled(f *flight, r *exchange.Reply) {
	for _, refusal := range r.Refused {
		if i := refusal.Index; i < len(f.settling) {
			p.refused(f.settling[i].lease, refusal.Why)
		}
	}
	watched := p.Feed.Watched.Load()
	for _, v := range f.settling {
		v.tell()
		if v.lease.gone != 0 {
			continue
		}
		if watched {
			p.tellSettled(v)
		}
		switch v.kind {
		case exchange.Ack:
			p.Counters.acked.Add(1)
		case exchange.Nack:
			p.Counters.retried.Add(1)
		case exchange.Bury: // counted by the source's word
		case exchange.Fail: // counted when it was settled
		case exchange.Release:
			p.Counters.released.Add(1)
		}
	}
}

// buried tells of what the exchange made dead letters, be it settled so or
// given up by the claim.
func (p *poller) buried(f *flight, r *exchange.Reply) {
	for _, b := range r.Buried {
		var took time.Duration
		if b.Index >= 0 && b.Index < len(f.settling) {
			v := f.settling[b.Index]
			b.Reason, b.Payload, took = v.reason, v.lease.Payload, v.took
		}
		p.Counters.buried.Add(1)
		if skipped, ok := p.lines.Allow("dead " + p.Source.Name()); ok {
			p.Logger.Warn("timer is dead", "id", b.ID, "reason", b.Reason, "claims", b.Claims, "entry", b.Entry, "skipped", skipped)
		}
		p.dead.add(death{Death{p.Source.Name(), b}, &p.Counters})
		if p.Feed.Watched.Load() {
			p.Feed.add(exchange.Event{
				Kind: exchange.EventDead, At: b.At, ID: b.ID, Attempt: b.Claims, Took: took, Text: b.Reason, Entry: b.Entry,
			})
		}
	}
}

// extended gives the leases that f extended their new token and life.
func (p *poller) extended(f *flight, r *exchange.Reply) {
	for _, refusal := range r.Refused {
		if i := refusal.Index - len(f.settling); i >= 0 && i < len(f.extended) {
			p.refused(f.extended[i], refusal.Why)
		}
	}
	for _, l := range f.extended {
		l.extending = false
		if l.gone != 0 {
			continue
		}
		if r.Extended != "" {
			l.Token = r.Extended
		}
		p.confirm(l, f.sent, r.Remaining)
		if !l.check { // else it was asked for after this one was sent
			l.confirmExtension(nil)
		}
	}
}

// tell answers who waits for the settlement.
func (v verdict) tell() {
	switch {
	case v.answer == nil:
	case v.lease.gone != 0:
		v.answer <- causeOf(v.lease.gone)
	default:
		v.answer <- nil
	}
}

// confirm notes that a lease is good for remaining, counted from sent: the
// source's clock was not behind that.
func (p *poller) confirm(l *lease, sent time.Time, remaining time.Duration) {
	l.confirmed, l.deadline = sent, sent.Add(remaining)
	l.good.Store(int64(l.deadline.Sub(began)))
	p.leaseAt = earlier(p.leaseAt, earlier(sent.Add(p.LeaseTTL/3), l.deadline))
}

// deal hands the leases of an answer to the handlers.
func (p *poller) deal(s *stream, f *flight, r *exchange.Reply, now time.Time) {
	stale := now.After(f.sent.Add(r.Remaining - p.LeaseTTL/2))
	watched := p.Feed.Watched.Load()
	for i := range r.Leases {
		l := &lease{Delivery: Delivery{Lease: r.Leases[i], Topic: p.Source.Name(), Claimed: r.Now, LeaseTTL: p.LeaseTTL}, queued: now, handedOut: now}
		l.lease, l.stream, l.slot = l, s, -1
		switch {
		case l.Fault != "":
			s.settle = append(s.settle, verdict{lease: l, kind: exchange.Bury, reason: l.Fault})
		case p.drain != nil || p.paused || stale:
			p.release(l)
		default:
			l.ctx.parent = p.run.ctx
			p.confirm(l, f.sent, r.Remaining)
			if p.MaxLeaseAge > 0 {
				p.leaseAt = earlier(p.leaseAt, now.Add(p.MaxLeaseAge))
			}
			s.hold(l)
			s.dealt = now
			p.Counters.delivered.Add(1)
			if watched {
				p.tell(l, exchange.Event{Kind: exchange.EventDelivered, Lateness: l.Lateness()})
			}
			p.run.offer(l)
		}
	}
	if p.free() < p.ahead.limit && p.ahead.look.IsZero() { // some wait for a handler
		p.ahead.look = now.Add(Patience)
	}
}

// plan decides when to look again.
func (p *poller) plan(f *flight, r *exchange.Reply) {
	next := r.Next
	switch {
	case len(r.Leases) > 0:
		p.barren = 0
		p.pace.found()
	case f.request.Want > 0:
		if len(f.settling)+len(f.extended) == 0 {
			p.Counters.empty.Add(1)
		}
		p.pace.vain(r.Now)
		if next != 0 || r.Healed > 0 || len(r.Buried) > 0 {
			p.barren = 0
			break
		}
		// Due by a rounding, or not to be had: soon again, never a hot loop.
		next = host.Doubled(time.Millisecond, p.barren, p.MaxPollingInterval)
		p.barren++
	}
	p.Counters.healed.Add(int64(r.Healed))
	p.glances.looked(r)
	p.pace.plan(f.sent, f.hints, r.Now, next)
	if r.Orphans {
		p.heal()
	}
}

// failed keeps the exchange, whose outcome is unknown, to send it again: the
// source answers it again if it was run, with what it claimed. If it was not,
// it claims nothing any more: leases may have ended meanwhile whose settlements
// wait behind it.
func (p *poller) failed(s *stream, f *flight, err error) {
	p.Counters.errors.Add(1)
	s.failures++
	s.err = err
	p.reserved -= f.request.Want
	f.request.Want, f.complete = 0, false
	for _, each := range p.streams {
		each.behind = true
	}
	if !errors.Is(err, exchange.ErrUnavailable) {
		p.reached()
	}
	switch {
	case errors.Is(err, exchange.ErrUnavailable):
		s.waiting = true
		p.down(err)
	case errors.Is(err, exchange.ErrStale):
		// Somebody counts in our name. A new name is as good: what was settled
		// before is refused by its token, not settled twice.
		p.Logger.Error("exchange refused as stale; going on under a new name", "err", err)
		s.incarnation, s.sequence = newIncarnation(), 1
		f.request.Incarnation, f.request.Sequence = s.incarnation, s.sequence
		s.retryAt = time.Now().Add(p.MaxPollingInterval)
	default:
		if s.failures == 1 || s.failures%100 == 0 {
			p.Logger.Error("exchange failed; the topic backs off", "err", err, "tries", s.failures)
		}
		s.retryAt = time.Now().Add(p.errorDelay(s.failures))
	}
}

// probe tries Redis on behalf of the whole runtime: with an exchange that
// waits, else with an empty one.
func (p *poller) probe() {
	p.probing = true
	for _, s := range p.streams {
		if s.waiting || !s.retryAt.IsZero() {
			p.transmit(s)
			return
		}
	}
	for _, s := range p.streams {
		if !s.busy() {
			p.send(s, &flight{})
			return
		}
	}
}

// resume goes on after Redis was down, at a random moment within a spell, so
// that thousands of topics do not all go on at once.
func (p *poller) resume(m Resume) {
	p.unavailable = false
	delay := time.Duration(float64(m.Within) * p.random())
	p.pace.soon(time.Now(), delay)
	if at := time.Now().Add(delay); !p.orderAt.IsZero() && p.orderAt.Before(at) {
		p.orderAt = at
	}
	for _, s := range p.streams {
		if s.waiting {
			s.waiting, s.retryAt = false, time.Now().Add(delay)
		}
	}
}

// maxErrorDelay caps the backoff after errors of one topic.
const maxErrorDelay = 5 * time.Second

func (p *poller) errorDelay(failures int) time.Duration {
	return host.Spread(host.Doubled(p.PollingInterval, failures-1, maxErrorDelay), 0.5, p.random())
}
