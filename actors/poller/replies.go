package poller

import (
	"errors"
	"time"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/messages/exchange"
)

// answered takes the answer to an exchange, or the news that there is none.
func (p *poller) exchangeAnswered(m exchanged) {
	s, f := m.stream, m.flight
	if m.err != nil {
		p.exchangeFailed(s, f, m.err)
		return
	}
	now := time.Now()
	p.clock = clock{source: m.reply.Now, local: now}
	s.flight, s.failures, s.err = nil, 0, nil
	s.unsettled = s.unsettled && !f.complete
	p.reserved -= f.request.Want
	p.Counters.exchanges.Add(1)
	p.Counters.lastExchange.Store(now.UnixNano())
	p.redisReachable()
	p.watchClock(f.sent, m.received, m.reply.Now)
	p.countSettled(f, m.reply)
	p.reportDeadLetters(f, m.reply)
	p.extensionsAnswered(f, m.reply)
	p.deliver(s, f, m.reply, now)
	p.plan(f, m.reply)
}

// reached notes that Redis answers, be it with an error of this topic alone.
func (p *poller) redisReachable() {
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
func (p *poller) redisDown(err error) {
	p.unavailable, p.probing = true, false
	p.root.Send(p.parent, Unavailable{p.Source.Shard(), err})
}

// settled counts the settlements of f by what became of them.
func (p *poller) countSettled(f *flight, r *exchange.Reply) {
	for _, refusal := range r.Refused {
		if i := refusal.Index; i < len(f.settling) {
			p.leaseRefused(f.settling[i].lease, refusal.Why)
		}
	}
	watched := p.Feed.Watched.Load()
	for _, v := range f.settling {
		v.answerSettler()
		if v.lease.refused != 0 {
			continue
		}
		if watched {
			p.emitSettled(v)
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
func (p *poller) reportDeadLetters(f *flight, r *exchange.Reply) {
	for _, b := range r.Buried {
		var took time.Duration
		if b.Index >= 0 && b.Index < len(f.settling) {
			v := f.settling[b.Index]
			b.Reason, b.Payload, took = v.reason, v.lease.Payload, v.took
		}
		p.Counters.deadLettered.Add(1)
		if skipped, ok := p.logLimit.Allow("dead " + p.Source.Name()); ok {
			p.Logger.Warn("timer is dead", "id", b.ID, "reason", b.Reason, "claims", b.Claims, "entry", b.Entry, "skipped", skipped)
		}
		p.deadHook.Add(queuedDeadTimer{DeadTimer{p.Source.Name(), b}, &p.Counters})
		if p.Feed.Watched.Load() {
			p.Feed.Add(exchange.Event{
				Kind: exchange.EventDead, At: b.At, ID: b.ID, Attempt: b.Claims, Took: took, Text: b.Reason, Entry: b.Entry,
			})
		}
	}
}

// extended gives the leases that f extended their new token and life.
func (p *poller) extensionsAnswered(f *flight, r *exchange.Reply) {
	for _, refusal := range r.Refused {
		if i := refusal.Index - len(f.settling); i >= 0 && i < len(f.extended) {
			p.leaseRefused(f.extended[i], refusal.Why)
		}
	}
	for _, l := range f.extended {
		l.extending = false
		if l.refused != 0 {
			continue
		}
		if r.Extended != "" {
			l.Token = r.Extended
		}
		p.confirm(l, f.sent, r.Remaining)
		if !l.verify { // else it was asked for after this one was sent
			l.confirmExtension(nil)
		}
	}
}

// tell answers who waits for the settlement.
func (v verdict) answerSettler() {
	switch {
	case v.answer == nil:
	case v.lease.refused != 0:
		v.answer <- causeOf(v.lease.refused)
	default:
		v.answer <- nil
	}
}

// confirm notes that a lease is good for remaining, counted from sent: the
// source's clock was not behind that.
func (p *poller) confirm(l *lease, sent time.Time, remaining time.Duration) {
	l.confirmed, l.deadline = sent, sent.Add(remaining)
	l.sharedDeadline.Store(int64(l.deadline.Sub(baseInstant)))
	p.leasesAt = earlier(p.leasesAt, earlier(sent.Add(p.LeaseTTL/3), l.deadline))
}

// deal hands the leases of an answer to the handlers.
func (p *poller) deliver(s *stream, f *flight, r *exchange.Reply, now time.Time) {
	stale := now.After(f.sent.Add(r.Remaining - p.LeaseTTL/2))
	watched := p.Feed.Watched.Load()
	for i := range r.Leases {
		l := &lease{Delivery: Delivery{Lease: r.Leases[i], Topic: p.Source.Name(), Claimed: r.Now, LeaseTTL: p.LeaseTTL}, queued: now, deliveredAt: now}
		l.lease, l.stream, l.slot = l, s, -1
		switch {
		case l.Fault != "":
			s.toSettle = append(s.toSettle, verdict{lease: l, kind: exchange.Bury, reason: l.Fault})
		case p.drain != nil || p.paused || stale:
			p.releaseLease(l)
		default:
			l.ctx.parent = p.queue.ctx
			p.confirm(l, f.sent, r.Remaining)
			if p.MaxLeaseAge > 0 {
				p.leasesAt = earlier(p.leasesAt, now.Add(p.MaxLeaseAge))
			}
			s.hold(l)
			s.deliveredAt = now
			p.Counters.delivered.Add(1)
			if watched {
				p.emit(l, exchange.Event{Kind: exchange.EventDelivered, Lateness: l.Lateness()})
			}
			p.queue.push(l)
		}
	}
	if p.free() < p.prefetch.limit && p.prefetch.checkAt.IsZero() { // some wait for a handler
		p.prefetch.checkAt = now.Add(MaxPrefetchWait)
	}
}

// plan decides when to look again.
func (p *poller) plan(f *flight, r *exchange.Reply) {
	next := r.Next
	switch {
	case len(r.Leases) > 0:
		p.emptyClaims = 0
		p.pace.found()
	case f.request.Want > 0:
		if len(f.settling)+len(f.extended) == 0 {
			p.Counters.empty.Add(1)
		}
		p.pace.emptyPoll(r.Now)
		if next != 0 || r.Healed > 0 || len(r.Buried) > 0 {
			p.emptyClaims = 0
			break
		}
		// Due by a rounding, or not to be had: soon again, never a hot loop.
		next = host.ExponentialDelay(time.Millisecond, p.emptyClaims, p.MaxPollingInterval)
		p.emptyClaims++
	}
	p.Counters.orphansRemoved.Add(int64(r.Healed))
	p.head.claimAnswered(r)
	p.pace.plan(f.sent, f.hintsSeen, r.Now, next)
	if r.Orphans {
		p.collectOrphans()
	}
}

// failed keeps the exchange, whose outcome is unknown, to send it again: the
// source answers it again if it was run, with what it claimed. If it was not,
// it claims nothing any more: leases may have ended meanwhile whose settlements
// wait behind it.
func (p *poller) exchangeFailed(s *stream, f *flight, err error) {
	p.Counters.errors.Add(1)
	s.failures++
	s.err = err
	p.reserved -= f.request.Want
	f.request.Want, f.complete = 0, false
	for _, each := range p.streams {
		each.unsettled = true
	}
	if !errors.Is(err, exchange.ErrUnavailable) {
		p.redisReachable()
	}
	switch {
	case errors.Is(err, exchange.ErrUnavailable):
		s.waiting = true
		p.redisDown(err)
	case errors.Is(err, exchange.ErrStale):
		// Somebody counts in our name. A new name is as good: what was settled
		// before is refused by its token, not settled twice.
		p.Logger.Error("exchange refused as stale; going on under a new name", "err", err)
		s.incarnation, s.sequence = newStreamIncarnation(), 1
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
	p.pace.pollWithin(time.Now(), delay)
	if at := time.Now().Add(delay); !p.overrideAt.IsZero() && p.overrideAt.Before(at) {
		p.overrideAt = at
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
	return host.Jitter(host.ExponentialDelay(p.PollingInterval, failures-1, maxErrorDelay), 0.5, p.random())
}
