package poller

import (
	"errors"
	"time"

	"github.com/wakebell/wakebell/actors/deadhook"
	"github.com/wakebell/wakebell/internal/backoff"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

// exchangeAnswered processes the reply to an exchange, or its failure.
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
	p.refundShare(f.request.Want - len(m.reply.Leases))
	if p.controlAnswered(m.reply) && len(m.reply.Leases) == 0 {
		f.request.Want = 0 // it was no claim
	}
	p.Counters.Exchanges.Add(1)
	p.Counters.LastExchange.Store(now.UnixNano())
	p.redisReachable(f.sent)
	p.watchClock(f.sent, m.received, m.reply.Now)
	p.countSettled(f, m.reply)
	p.reportDeadLetters(f, m.reply)
	p.extensionsAnswered(f, m.reply)
	p.deliver(s, f, m.reply, m.received)
	p.openWindow(s, f, len(m.reply.Leases), now)
	p.plan(s, f, m.reply)
}

// redisReachable notes that Redis answers a request that was sent at an instant, even with
// an error of this topic alone. In an outage many answers to earlier requests may be on
// their way, mainly with many topics on a busy machine: each would wake up all topics.
func (p *poller) redisReachable(sent time.Time) {
	if (p.unavailable || p.probing) && sent.After(p.heldAt) {
		p.unavailable, p.probing = false, false
		p.root.Send(p.parent, Available{p.Source.Shard()})
	}
}

// watchClock logs a step of the source's clock. Nothing here depends on that
// clock: leases expire by the local monotonic clock, and the source decides what
// is due.
func (p *poller) watchClock(sent, received, source time.Time) {
	if step := p.clockWatch.Observe(sent, received, source); step != 0 {
		p.Counters.ClockSteps.Add(1)
		p.Logger.Warn("redis clock stepped; timers are early or late by as much", "by", step.Round(time.Millisecond))
	}
}

// redisDown reports that Redis is down and waits for the supervisor.
func (p *poller) redisDown(err error) {
	p.probing = false
	p.hold()
	p.root.Send(p.parent, Unavailable{p.Source.Shard(), err})
}

// hold makes the poller send nothing until it receives Probe or Resume.
func (p *poller) hold() { p.unavailable, p.heldAt = true, time.Now() }

// countSettled counts the settlements of f by their results and answers the
// handlers that wait for one.
func (p *poller) countSettled(f *flight, r *exchange.Reply) {
	for _, refusal := range r.Refused {
		if i := refusal.Index; i < len(f.settling) {
			p.leaseRefused(f.settling[i].lease, refusal.Reason)
		}
	}
	collects, settled := p.Feed.Collects(), 0
	for _, v := range f.settling {
		v.answerSettler()
		if v.lease.refused != 0 {
			continue
		}
		if v.kind != exchange.DeadLetter { // its event is a dead letter
			settled++
		}
		if collects {
			p.emitSettled(v)
		}
		if p.Records.Wants(v.kind == exchange.Ack && v.reason == "", v.lease.Claims > 1) {
			p.recordSettled(v)
		}
		switch v.kind {
		case exchange.Ack:
			p.Counters.Acked.Add(1)
			if v.rejected {
				p.Counters.RejectedAcks.Add(1)
			}
		case exchange.Nack:
			p.Counters.Retried.Add(1)
		case exchange.DeadLetter: // counted from the reply
			if v.rejected {
				p.Counters.Rejected.Add(1)
			}
		case exchange.Fail: // counted when the handler returned
		case exchange.Release:
			p.Counters.Released.Add(1)
		}
	}
	if !collects {
		p.Feed.Miss(settled)
	}
	if len(f.settling)+len(r.DeadLettered) > 0 {
		p.Records.Wake()
	}
}

// reportDeadLetters logs, counts and passes on the timers that the exchange
// dead-lettered, by a settlement or because their claims were used up.
func (p *poller) reportDeadLetters(f *flight, r *exchange.Reply) {
	for _, b := range r.DeadLettered {
		var took time.Duration
		if b.Index >= 0 && b.Index < len(f.settling) {
			v := f.settling[b.Index]
			b.Reason, b.Payload, took = v.reason, v.lease.Payload, v.took
		}
		p.Counters.DeadLettered.Add(1)
		if b.Index < 0 && b.Reason == exchange.PayloadMissing {
			p.Counters.PayloadsMissing.Add(1)
		}
		if skipped, ok := p.logLimit.Allow("dead " + p.Source.Name()); ok {
			p.Logger.Warn("timer dead-lettered", "id", b.ID, "reason", b.Reason, "attempt", b.Claims, "entry", b.Entry, "skipped", skipped)
		}
		p.deadHook.Add(deadhook.Timer{Topic: p.Name(), DeadLettered: b}, &p.Counters)
		e := wakebelltype.Event{
			Kind: wakebelltype.EventDead, At: b.At, ID: b.ID, Attempt: b.Claims, Took: took, Text: b.Reason, Entry: b.Entry,
		}
		if p.Feed.Watched.Load() {
			p.Feed.Add(e)
		}
		if p.Records.Wants(false, false) {
			p.Records.Append(attemptOf(e))
		}
	}
}

// extensionsAnswered gives the extended leases of f their new token and expiry.
func (p *poller) extensionsAnswered(f *flight, r *exchange.Reply) {
	for _, refusal := range r.Refused {
		if i := refusal.Index - len(f.settling); i >= 0 && i < len(f.extended) {
			if refusal.Reason == exchange.Lost {
				p.Counters.HeartbeatsFailed.Add(1)
			}
			p.leaseRefused(f.extended[i], refusal.Reason)
		}
	}
	for _, l := range f.extended {
		l.extending = false
		if l.refused != 0 {
			continue
		}
		if r.Extended != "" {
			l.Token, l.granted = r.Extended, f.granted(r)
		}
		p.confirm(l, f.sent, r.Remaining)
		if !l.verify { // otherwise it was requested after f was sent
			l.confirmExtension(nil)
		}
	}
}

// answerSettler answers the handler that waits for the settlement.
func (v verdict) answerSettler() {
	switch {
	case v.answer == nil:
	case v.lease.refused != 0:
		v.answer <- causeOf(v.lease.refused)
	default:
		v.answer <- nil
	}
}

// confirm notes that a lease is good for remaining, counted from sent, which is
// before the source read its clock.
func (p *poller) confirm(l *lease, sent time.Time, remaining time.Duration) {
	l.confirmed, l.deadline = sent, sent.Add(remaining)
	l.sharedDeadline.Store(int64(l.deadline.Sub(baseInstant)))
	p.leasesAt = earlier(p.leasesAt, earlier(sent.Add(p.LeaseTTL/3), l.deadline))
}

// plan decides when to poll next.
func (p *poller) plan(s *stream, f *flight, r *exchange.Reply) {
	sent := f.sent
	if !r.Sent.IsZero() {
		sent = r.Sent
	}
	next, held := r.Next, p.pace.hold(sent, r.Now, r.Held)
	if held && f.request.Want > len(r.Leases) {
		p.Counters.Throttled.Add(1)
	}
	p.Counters.KeyThrottled.Add(int64(r.KeyHeld))
	if held && next == 0 {
		next = r.Held
	}
	switch {
	case len(r.Leases) > 0:
		p.emptyClaims = 0
		p.pace.found()
	case f.request.Want > 0:
		if len(f.settling)+len(f.extended) == 0 {
			p.Counters.Empty.Add(1)
		}
		if p.pace.emptyPoll(r.Now) && p.division != nil {
			p.division.Lost(time.Now(), f.overdue)
		}
		if next != 0 || r.Healed > 0 || len(r.DeadLettered) > 0 {
			p.emptyClaims = 0
			break
		}
		// Due by a rounding error, or not claimable: poll again soon, but not in
		// a hot loop.
		next = backoff.Exponential(time.Millisecond, p.emptyClaims, p.MaxPollingInterval)
		p.emptyClaims++
	}
	p.head.claimAnswered(r)
	p.pace.plan(sent, f.hintsSeen, r.Now, next, p.earlyLead(s, len(r.Leases), next))
	if r.Orphans || p.Counters.OrphansHeld.Load() > 0 {
		p.collectOrphans()
	}
}

// exchangeFailed keeps the exchange, whose outcome is unknown, to send it again:
// if the source ran it, the source repeats its reply with the claimed leases. If
// not, the repeated exchange claims nothing: leases may have expired whose
// settlements are queued behind it.
func (p *poller) exchangeFailed(s *stream, f *flight, err error) {
	p.Counters.Errors.Add(1)
	p.Counters.HeartbeatsFailed.Add(int64(len(f.extended)))
	s.failures++
	s.err = err
	p.reserved -= f.request.Want
	f.request.Want, f.complete = 0, false
	for _, each := range p.streams {
		each.unsettled = true
	}
	if !errors.Is(err, exchange.ErrUnavailable) {
		p.redisReachable(f.sent)
	}
	switch {
	case errors.Is(err, exchange.ErrUnavailable):
		s.waiting = true
		p.redisDown(err)
	case errors.Is(err, exchange.ErrStale):
		// Another process uses this incarnation's name. The settlements are sent
		// again under a new name; those that were run are refused by their
		// tokens.
		p.Logger.Error("exchange refused as stale; continuing under a new incarnation", "err", err)
		s.incarnation, s.sequence = newStreamIncarnation(), 1
		f.request.Incarnation, f.request.Sequence = s.incarnation, s.sequence
		s.retryAt = time.Now().Add(p.MaxPollingInterval)
	default:
		if s.failures == 1 || s.failures%100 == 0 {
			p.Logger.Error("exchange failed; the topic backs off", "err", err, "attempt", s.failures)
		}
		s.retryAt = time.Now().Add(p.errorDelay(s.failures))
	}
}

// probe tries Redis on behalf of all topics of the shard: with an exchange that
// waits, or else with an empty one. It cannot while all streams wait for answers to
// requests from before the outage.
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
	p.probing = false
	p.root.Send(p.parent, Unprobed{p.Source.Shard()})
}

// resume continues after an outage, at a random moment within m.Within, so that
// thousands of topics do not resume at the same time.
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

// maxErrorDelay is the longest backoff after errors of one topic.
const maxErrorDelay = 5 * time.Second

func (p *poller) errorDelay(failures int) time.Duration {
	return backoff.Jitter(backoff.Exponential(p.PollingInterval, failures-1, maxErrorDelay), 0.5, p.random())
}
