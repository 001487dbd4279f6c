package poller

import (
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/guard"
	"github.com/wakebell/wakebell/messages/exchange"
)

const (
	// maxClaim bounds the claims of one exchange: larger exchanges gain nothing
	// and block Redis for longer.
	maxClaim = 100
	// maxSettle bounds the settlements of one exchange, and its extensions.
	maxSettle = 500
	// secondStreamAt is the number of slots from which a second concurrent
	// exchange pays off: below it, both are only smaller.
	secondStreamAt = 50
	// batchDelay is how long settlements wait for those of the same claim, so
	// that quick handlers do not cause an exchange each.
	batchDelay = time.Millisecond
)

func streamsFor(slots int) int {
	if slots > secondStreamAt {
		return 2
	}
	return 1
}

// pump sends what can be sent and sets the timer for the next step. It runs after
// every message, so that no message handler has to.
func (p *poller) pump(c actor.Context, now time.Time) {
	p.watchLeases(now)
	p.handOut(now)
	p.watchBreaker(now)
	p.returnShare()
	p.divide(now)
	p.report(now)
	if !p.unavailable && !p.overrideAt.IsZero() && !now.Before(p.overrideAt) {
		p.readOverride()
	}
	p.batchAt, p.windowAt = time.Time{}, time.Time{}
	p.markSettled()
	switch {
	case p.NoPrefetch:
	case p.Flow.MaxInFlight > 0 || p.share != nil: // a lease that waits would keep another from being handled
		p.prefetch.limit = 0
	default:
		p.prefetch.measure(now)
	}
	p.returnExcess(now)
	p.openStreams()
	for _, s := range p.streams {
		switch {
		case s.flight == nil:
			if f := p.compose(s, now); f != nil {
				p.send(s, f)
			}
		case !p.unavailable && !s.retryAt.IsZero() && !now.Before(s.retryAt):
			p.transmit(s)
		}
	}
	p.competeForShare()
	p.askForHelp(now)
	p.spawnHandlers(c)
	p.checkDrain()
	p.countHeld()
	p.armTimer(now)
}

// free is the number of slots, prefetch included, that neither a lease nor a
// claim in flight occupies. A batch occupies as many as a full one. A lease that was
// claimed early occupies none until its timer is due.
func (p *poller) free() int {
	free := p.slots() + p.prefetch.limit + len(p.early.leases) - p.reserved - p.queue.vacant() - p.perSlot()*int(p.queue.restarting.Load())
	for _, s := range p.streams {
		free -= len(s.held)
	}
	return free
}

// compose returns the next exchange of an idle stream, or nil.
func (p *poller) compose(s *stream, now time.Time) *flight {
	if p.unavailable || p.delayForBatch(s, now) || p.delayForWindow(s, now) {
		return nil
	}
	f := s.blankFlight()
	p.takeSettlements(s, f)
	p.takeExtensions(s, f, now)
	if want := p.want(s, f, now); want > 0 {
		if p.mayPeek(f, now) {
			p.peek(f)
			return f
		}
		if p.mayLook(f) {
			p.look(f)
			return f
		}
		if want = p.takeShare(want); want == 0 {
			return s.unlessEmpty(f)
		}
		f.request.Want, f.request.Ahead = want, p.earlySpan(s)
		f.overdue, p.overdueSeen = p.overdueSeen, false
		if p.breaker != nil {
			f.generation = p.breaker.Generation()
		}
		p.reserved += want
		p.pace.pollSent(now)
	}
	return s.unlessEmpty(f)
}

// markSettled notes which streams have written all settlements that were
// outstanding when an exchange failed.
func (p *poller) markSettled() {
	for _, s := range p.streams {
		if s.unsettled && !p.unavailable && s.flight == nil && len(s.toSettle) == 0 {
			s.unsettled = false
		}
	}
}

// mayClaim reports whether a stream may claim. It may not while an announced
// override is being read: a timer that was scheduled after a pause would be
// claimed in spite of it. It may not while another stream has outstanding
// settlements from before a failure: a lease of these may have expired, and its
// timer would be claimed again before its ack. Its own settlements run before its
// claim.
func (p *poller) mayClaim(s *stream) bool {
	if p.drain != nil || p.paused || p.claimsSuspended || !p.breakerAllows() {
		return false
	}
	for _, other := range p.streams {
		if other != s && other.unsettled {
			return false
		}
	}
	return true
}

// delayForBatch delays settlements for a moment while the other handlers of the
// same claim are about to finish.
func (p *poller) delayForBatch(s *stream, now time.Time) bool {
	if len(s.toSettle) == 0 || len(s.held) == 0 || s.extendDue || p.drain != nil {
		return false
	}
	until := s.deliveredAt.Add(batchDelay)
	if !now.Before(until) {
		return false
	}
	p.batchAt = earlier(p.batchAt, until)
	return true
}

// want is the number of leases that an exchange should claim: all free slots if
// the exchange is sent anyway or it is time to poll.
func (p *poller) want(s *stream, f *flight, now time.Time) int {
	free := min(p.free(), maxClaim)
	if p.breakerState == guard.HalfOpen {
		free = min(free, 1)
	}
	switch {
	case free <= 0 || !p.mayClaim(s):
		return 0
	case s.number > 0 && (!p.pace.backlog || free < secondStreamAt):
		return 0
	case len(f.request.Settle) > 0 && p.pace.prompt() || p.pace.ready(now):
		return free
	default:
		return 0
	}
}

func (p *poller) takeSettlements(s *stream, f *flight) {
	taken := 0
	f.settling = slices.Grow(f.settling, min(len(s.toSettle), maxSettle))
	f.request.Settle = slices.Grow(f.request.Settle, min(len(s.toSettle), maxSettle))
	for _, v := range s.toSettle {
		if len(f.settling) == maxSettle {
			break
		}
		taken++
		if v.lease.refused != 0 { // an extension was refused meanwhile
			v.answerSettler()
			continue
		}
		f.settling = append(f.settling, v)
		f.request.Settle = append(f.request.Settle, exchange.Settlement{
			Held:    v.lease.held(),
			Verdict: v.kind,
			Delay:   v.delay,
			Reason:  v.reason,
			Failed:  v.failed,
			Charge:  v.lease.Charge,
		})
	}
	s.toSettle = slices.Delete(s.toSettle, 0, taken) // the array holds no lease that it has passed on
	if len(s.toSettle) == 0 {
		s.urgent, s.settleBy = false, time.Time{}
	}
	f.complete = len(s.toSettle) == 0
}

// send numbers a new exchange and transmits it.
func (p *poller) send(s *stream, f *flight) {
	if !f.peek {
		s.sequence++
	}
	f.request.Incarnation, f.request.Stream, f.request.Sequence = s.incarnation, s.number, s.sequence
	f.request.LeaseTTL, f.request.Flow = p.LeaseTTL, p.Flow
	f.hintsSeen = p.pace.hints
	s.flight = f
	p.transmit(s)
}

// transmit sends the stream's exchange, for the first time or again. The channel
// has room: a stream has at most one exchange in flight.
func (p *poller) transmit(s *stream) {
	s.retryAt, s.waiting = time.Time{}, false
	s.requests <- s.flight
}

// spawnHandlers spawns handlers while there are leases that no handler takes soon.
func (p *poller) spawnHandlers(c actor.Context) {
	for len(p.handlers) < p.concurrency && p.lacksHandler() {
		pid, err := c.SpawnNamed(handlerProps(p.queue, p.Shared, p.self), handlerName(len(p.handlers)))
		if err != nil { // the name is taken; the next incarnation starts without children
			panic(err)
		}
		p.handlers = append(p.handlers, pid)
		p.queue.workerStarts()
	}
}

// lacksHandler reports whether another handler could begin a lease. Of batches there may be
// as many as leases, as far as it is known here.
func (p *poller) lacksHandler() bool {
	if p.HandleBatch == nil {
		return p.queue.lacksWorker()
	}
	needed := int(p.queue.restarting.Load()) - len(p.early.leases)
	for _, s := range p.streams {
		needed += len(s.held)
	}
	return len(p.handlers) < needed
}

// armTimer sets the timer to the next instant at which there is work. An early
// tick is harmless, so the timer is only moved forward, and otherwise only to the
// steps in which the end of a window is waited for.
func (p *poller) armTimer(now time.Time) {
	at, step := p.nextWork(), time.Duration(0)
	if at.IsZero() {
		return
	}
	if p.endsWindow(at) {
		at, step = inSteps(now, at), timerStep
	}
	if !p.timerAt.IsZero() && !at.Before(p.timerAt) && at.Sub(p.timerAt) >= step {
		return
	}
	p.timerAt = at
	if p.timer == nil {
		root, self, incarnation := p.root, p.self, p.incarnation
		p.timer = time.AfterFunc(at.Sub(now), func() { root.Send(self, tick{incarnation}) })
		return
	}
	p.timer.Reset(at.Sub(now))
}

// nextWork is the next instant at which there is work; zero: there is none to wait for.
func (p *poller) nextWork() time.Time {
	at := earlier(earlier(p.leasesAt, p.batchAt), p.prefetch.checkAt)
	at = earlier(at, p.windowAt)
	if !p.claimsSuspended {
		at = earlier(at, p.dueEarly())
	}
	if p.unavailable {
		return at
	}
	at = earlier(earlier(at, p.divideAt), earlier(p.helpAt, p.reports.at))
	at = earlier(at, p.overrideAt)
	if p.breaker != nil {
		at = earlier(at, p.breaker.Until())
	}
	for _, s := range p.streams {
		at = earlier(at, s.retryAt)
	}
	// A due poll waits while settlements are delayed: its instant has passed,
	// and the timer would fire at once, again and again.
	if first := p.streams[0]; !first.busy() && p.free() > 0 && !p.awaitsShare && p.batchAt.IsZero() && p.mayClaim(first) {
		at = earlier(at, later(p.pace.wakeAt(), p.windowEnd(first)))
	}
	return at
}
