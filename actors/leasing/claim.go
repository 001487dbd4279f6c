package leasing

import (
	"slices"
	"time"

	"github.com/wakebell/wakebell/actors/guard"
	"github.com/wakebell/wakebell/messages/exchange"
)

// batchDelay is how long settlements wait for those of the same claim, so
// that quick handlers do not cause an exchange each.
const batchDelay = time.Millisecond

// sending is what an idle stream sends.
type sending uint8

const (
	waits    sending = iota // nothing before decision.notBefore
	settling                // an exchange that claims nothing; nothing if it would be empty
	claiming                // an exchange that claims timers
	peeking                 // nothing: a watch begins, because only the idle backoff requests a poll
	looking                 // a peek of a fallback, to see for how long timers have been due
)

// decision is what the policies want of an idle stream.
type decision struct {
	send      sending
	want      int           // claiming: leases, before the group is asked
	ahead     time.Duration // claiming: how long before their instants timers may be claimed
	notBefore time.Time     // what else is to be sent is not sent before; zero: an event will come first
}

// decide combines the policies. The first row that applies wins:
//
//	outage        Redis is down                                 wait for an event
//	batch         handlers of the same claim are about to end   wait, up to batchDelay
//	window        it is open, and nothing is urgent             wait for its end
//	drain, override, breaker, unsettled streams                 claim nothing
//	slots         none is free                                  claim nothing
//	backlog       on streams but the first, there is none       claim nothing
//	pace          no poll is due, and nothing is settled        claim nothing before the next poll
//	head          the head of the topic is known                watch it
//	division      this node is a fallback                       look
//	early         the topic delivers steadily                   claim timers that are due soon, too
//	otherwise                                                   claim as many as slots are free
//
// What is settled and extended goes with a claim, or without one. At last the group of the
// topic may grant fewer places than a claim wants (compose).
func (c *Core) decide(s *Stream, now time.Time) decision {
	if c.outage.down {
		return decision{}
	}
	if until := s.batchUntil(c.drain != nil); now.Before(until) {
		return decision{notBefore: until}
	}
	if until := c.windowUntil(s); now.Before(until) {
		if len(s.toSettle) == 0 {
			until = c.nextPoll(s, now)
		}
		return decision{notBefore: until}
	}
	settles, extends := s.settles(c.maxSettled()), c.extends(s, now)
	want := c.want(s, settles, now)
	switch {
	case want == 0:
		return decision{send: settling, notBefore: c.nextPoll(s, now)}
	case !settles && !extends && c.mayPeek(now):
		return decision{send: peeking}
	case !settles && !extends && c.mayLook():
		return decision{send: looking}
	default:
		return decision{send: claiming, want: want, ahead: c.earlySpan(s)}
	}
}

// want is the number of leases that an exchange should claim: all free slots if
// the exchange is sent anyway or it is time to poll.
func (c *Core) want(s *Stream, settles bool, now time.Time) int {
	free := min(c.free(), maxClaim)
	if c.breaker.reported == guard.HalfOpen {
		free = min(free, 1)
	}
	switch {
	case free <= 0 || !c.mayClaim(s, now):
		return 0
	case s.number > 0 && (!c.pace.backlog || free < secondStreamAt):
		return 0
	case settles && c.pace.prompt() || c.pace.ready(now):
		return free
	default:
		return 0
	}
}

// mayClaim reports whether a stream may claim. It may not while an announced
// override is being read: a timer that was scheduled after a pause would be
// claimed in spite of it. It may not while another stream has outstanding
// settlements from before a failure: a lease of these may have expired, and its
// timer would be claimed again before its ack. Its own settlements run before its
// claim.
func (c *Core) mayClaim(s *Stream, now time.Time) bool {
	if c.drain != nil || c.paused || c.override.suspends || !c.breakerAllows(now) {
		return false
	}
	for _, other := range c.streams {
		if other != s && other.unsettled {
			return false
		}
	}
	return true
}

// nextPoll is when an idle stream polls, unless something happens before; zero: not without
// another event. Only the first stream waits for polls: others share a backlog with it.
func (c *Core) nextPoll(s *Stream, now time.Time) time.Time {
	if s.number > 0 || c.free() <= 0 || !c.mayClaim(s, now) {
		return time.Time{}
	}
	return later(c.pace.wakeAt(), c.windowEnd(s))
}

// batchUntil is until when settlements wait, because the other handlers of the same claim are
// about to finish; in the past: they do not.
func (s *Stream) batchUntil(draining bool) (until time.Time) {
	if len(s.toSettle) == 0 || len(s.held) == 0 || s.extendDue || draining {
		return until
	}
	return s.deliveredAt.Add(batchDelay)
}

// sendAll sends what idle streams can send, and what failed streams send again.
func (c *Core) sendAll(now time.Time) {
	c.agenda[settle], c.agenda[poll], c.agenda[ask] = time.Time{}, time.Time{}, time.Time{}
	for _, s := range c.streams {
		switch {
		case s.flight == nil:
			if f := c.compose(s, now); f != nil {
				c.send(s, f)
			}
		case !c.outage.down && !s.retryAt.IsZero() && !now.Before(s.retryAt):
			c.transmit(s)
		}
	}
}

// compose returns the next exchange, or peek of a fallback, of an idle stream, or nil.
func (c *Core) compose(s *Stream, now time.Time) *Flight {
	d, asks := c.decide(s, now), c.mayAsk(s, now)
	if d.send == claiming {
		if d.want = c.share.take(d.want); d.want == 0 {
			d = decision{send: settling}
		}
	}
	switch d.send {
	case waits:
		c.agenda.by(waitsFor(s), d.notBefore)
		return nil
	case peeking:
		c.watch()
		d.notBefore = c.nextPoll(s, now)
	}
	var f *Flight // nil while there is nothing to do, as after most events
	if asks || len(s.toSettle) > 0 || s.extendDue || d.send == looking || d.send == claiming {
		f = &Flight{stream: s}
		c.takeSettlements(s, f)
		c.takeExtensions(s, f, now)
	}
	switch d.send {
	case looking:
		c.look(f, now)
		return f
	case claiming:
		f.Request.Want, f.Request.Ahead = d.want, d.ahead
		f.overdue, c.divider.overdueSeen = c.divider.overdueSeen, false
		if c.breaker.Breaker != nil {
			f.generation = c.breaker.Generation()
		}
		c.endWatch()
		c.reserved += d.want
		c.pace.pollSent(now)
	}
	if asks || !f.empty() {
		return f
	}
	c.agenda.by(poll, d.notBefore)
	if s.number == 0 {
		c.agenda[ask] = c.override.askAt
	}
	return nil
}

// waitsFor is what a stream waits for.
func waitsFor(s *Stream) cause {
	if len(s.toSettle) > 0 {
		return settle
	}
	return poll
}

// markSettled notes which streams have written all settlements that were
// outstanding when an exchange failed.
func (c *Core) markSettled() {
	for _, s := range c.streams {
		if s.unsettled && !c.outage.down && s.flight == nil && len(s.toSettle) == 0 {
			s.unsettled = false
		}
	}
}

// maxSettled is how many settlements one exchange takes at most.
func (c *Core) maxSettled() int {
	if c.Flow.ByKey() {
		return maxSettleByKey
	}
	return maxSettle
}

// takeSettlements adds the queued settlements of a stream to f.
func (c *Core) takeSettlements(s *Stream, f *Flight) {
	taken, rejects, bytes, most := 0, 0, 0, c.maxSettled()
	f.Settling = slices.Grow(f.Settling, min(len(s.toSettle), most))
	f.Request.Settle = slices.Grow(f.Request.Settle, min(len(s.toSettle), most))
	for _, v := range s.toSettle {
		if len(f.Settling) == most || v.Kind == exchange.DeadLetter && rejects == maxReject || bytes >= maxHeldBytes {
			break
		}
		taken++
		bytes += len(v.Lease.Token)
		if v.Lease.refused != 0 { // an extension was refused meanwhile
			v.answer()
			continue
		}
		if v.Kind == exchange.DeadLetter {
			rejects++
		}
		f.Settling = append(f.Settling, v)
		f.Request.Settle = append(f.Request.Settle, exchange.Settlement{
			Held:    v.Lease.held(),
			Verdict: v.Kind,
			Delay:   v.Delay,
			Reason:  v.Reason,
			Failed:  v.failed,
			Snoozed: v.Snoozed,
			Charge:  v.Lease.Charge,
		})
	}
	s.toSettle = slices.Delete(s.toSettle, 0, taken) // the array holds no lease that it has passed on
	if len(s.toSettle) == 0 {
		s.urgent, s.settleBy = false, time.Time{}
	}
	f.complete = len(s.toSettle) == 0
}
