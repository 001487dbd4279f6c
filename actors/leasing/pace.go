package leasing

import (
	"time"

	"github.com/wakebell/wakebell/internal/backoff"
)

// pace decides when a poller polls. All instants are local; what the source
// reports is relative to its clock.
//
// A poll has four causes, of which the earliest counts: the next due instant that
// the source reported, a hint that the first timer changed, the idle backoff,
// which finds timers of peers that send no hints, and requests of the poller
// itself.
type pace struct {
	idleBackoff
	random func() float64 // in [0, 1)

	// fallback is for how long a timer must have been due until this node polls for it;
	// 0: it does not wait. See package division.
	fallback time.Duration
	helping  bool // a fallback that helps claims a backlog at once

	backlog     bool      // the last reply said that more is due
	pollAt      time.Time // the next poll of the idle backoff; zero while a reply is awaited, or a watch runs
	requestedAt time.Time // a requested poll; zero: none
	dueAt       time.Time // when to poll for the timer that is due next by the last reply; zero: none
	dueBySource time.Time // when it is due by the source's clock

	// hintAt is when a timer is due by a hint; zero: none. It stays until a reply
	// certainly includes it: a reply to a request that was composed after the
	// hint had arrived (hints counts them), or one from a later instant of the
	// source's clock than hintSent.
	hintAt, hintSent time.Time
	hintBySource     time.Time // hintAt by the source's clock
	hints            int
	answeredHints    int // hints when the last answered request was composed

	// heldUntil is the end of the time in which flow control claims nothing; zero: it
	// holds nothing back. freed is when a hint said that this is over, by the source's
	// clock: an older reply does not hold timers back again.
	heldUntil, freed time.Time

	// lostRaces rises with every poll for a due timer that another node has
	// taken, and falls twice as fast with every successful one: of many nodes
	// that wait for the same timers, those that often win stay in front, and the
	// others stay back. contentionDelay is the random delay that follows from it.
	// Invariant: 0 <= lostRaces <= maxLostRaces.
	lostRaces       int
	contentionDelay time.Duration
	expected        time.Time // when the target of the poll in flight is due, by the source's clock; zero: it has none
}

const (
	// maxContentionDelay bounds the delay that spreads many nodes that wait for
	// one timer.
	maxContentionDelay = 50 * time.Millisecond
	// maxLostRaces is where the delay is largest: a node that is alone from then
	// on has no delay after four timers.
	maxLostRaces = 7
)

// ready reports whether it is time to poll.
func (p *pace) ready(now time.Time) bool {
	at := p.wakeAt()
	return p.backlog && p.prompt() || (!at.IsZero() && !now.Before(at))
}

// prompt reports whether this node claims a backlog, and with its settlements.
func (p *pace) prompt() bool { return p.fallback == 0 || p.helping }

// wakeAt is when to poll next; zero: not without another event.
func (p *pace) wakeAt() time.Time {
	at := earlier(p.pollAt, p.requestedAt)
	if due := p.nextDue(); !due.IsZero() {
		at = earlier(at, due.Add(p.contentionDelay+p.fallback))
	}
	return later(at, p.heldUntil)
}

// pollSent notes that a claim is sent: its reply decides when to poll next.
func (p *pace) pollSent(now time.Time) {
	p.expected = time.Time{}
	if !p.dueAt.IsZero() && !now.Before(p.dueAt) {
		p.expected = p.dueBySource
	}
	if !p.hintAt.IsZero() && !now.Before(p.hintAt) {
		p.expected = earlier(p.expected, p.hintBySource)
	}
	p.pollAt, p.requestedAt, p.dueAt = time.Time{}, time.Time{}, time.Time{}
}

// pollWithin requests a poll after d at the latest. A poll in flight does not
// satisfy it.
func (p *pace) pollWithin(now time.Time, d time.Duration) {
	p.requestedAt = earlier(p.requestedAt, now.Add(d))
}

// handleHint processes a hint: the first timer is due in after the source's clock
// said sent.
func (p *pace) handleHint(now time.Time, in time.Duration, sent time.Time) {
	p.hints++
	if at := now.Add(in); p.hintAt.IsZero() || at.Before(p.hintAt) {
		p.hintAt, p.hintBySource = at, sent.Add(in)
	}
	p.hintSent = sent
}

// handleFree processes a hint that flow control may let a timer be claimed. Several
// nodes may wait for it, which then race as for a timer that becomes due.
func (p *pace) handleFree(now, sent time.Time) {
	p.freed = sent
	if !p.heldUntil.IsZero() {
		p.heldUntil = time.Time{}
		p.handleHint(now, 0, sent)
	}
}

// hold notes for how long flow control claims nothing, by a reply. It reports whether
// it holds timers back.
func (p *pace) hold(sent, sourceNow time.Time, held time.Duration) bool {
	p.heldUntil = time.Time{}
	if held > 0 && (p.freed.IsZero() || sourceNow.After(p.freed)) {
		p.heldUntil = sent.Add(held)
	}
	p.freed = time.Time{} // counts for one reply: the source's clock may step backwards
	return !p.heldUntil.IsZero()
}

// found notes a reply with leases.
func (p *pace) found() {
	p.emptyPolls = 0
	p.adjustForContention(-2)
}

// emptyPoll notes a reply without leases, and reports whether another node was faster.
// A poll that was early by a rounding error has lost no race.
func (p *pace) emptyPoll(sourceNow time.Time) (lost bool) {
	p.emptyPolls++
	if lost = !p.expected.IsZero() && !sourceNow.Before(p.expected); lost {
		p.adjustForContention(1)
	}
	return lost
}

// adjustForContention moves this node back (by > 0) or to the front.
func (p *pace) adjustForContention(by int) {
	p.lostRaces = min(max(p.lostRaces+by, 0), maxLostRaces)
	p.contentionDelay = 0
	if p.lostRaces > 0 {
		p.contentionDelay = time.Duration(float64(backoff.Exponential(time.Millisecond, p.lostRaces, maxContentionDelay)) * p.random())
	}
	if p.lostRaces == maxLostRaces { // others win all the time: stay well back
		p.contentionDelay = (maxContentionDelay + p.contentionDelay) / 2
	}
}

// plan processes what a reply says about the future. sent is when its request was
// sent, hints the value of p.hints when it was composed, sourceNow the source's
// clock in the reply. next is relative to that clock: counted from sent it is
// early rather than late. A poll for it comes earlier by lead.
func (p *pace) plan(sent time.Time, hints int, sourceNow time.Time, next, lead time.Duration) {
	p.pollAt, p.dueAt, p.dueBySource = later(sent, p.heldUntil).Add(max(p.idleDelay(), p.fallback)), time.Time{}, time.Time{}
	switch p.backlog = next == 0 && p.prompt(); {
	case next > 0:
		p.dueAt, p.dueBySource = sent.Add(next-lead), sourceNow.Add(next)
	case next == 0 && !p.backlog: // how long it has been due is seen by the next look
		p.dueAt, p.dueBySource = sent, sourceNow
	}
	p.answeredHints = hints
	if hints == p.hints || sourceNow.After(p.hintSent) {
		p.hintAt = time.Time{}
	}
}

// idleBackoff is the delay between polls that find nothing: base · 2^(n−1), capped, then ±50 %,
// as in the Python peers. The jitter is applied after the cap, so that many topics do not poll
// in step.
type idleBackoff struct {
	base, limit time.Duration
	emptyPolls  int // since a timer was found
}

// delay returns the next delay. random is in [0, 1).
func (b *idleBackoff) delay(random float64) time.Duration {
	return backoff.Jitter(backoff.Exponential(b.base, max(b.emptyPolls-1, 0), b.limit), 0.5, random)
}

// idleDelay returns the next delay of the idle backoff.
func (p *pace) idleDelay() time.Duration { return p.delay(p.random()) }

// nextDue is when the next timer is due by replies and hints; zero: none is known.
func (p *pace) nextDue() time.Time { return earlier(p.dueAt, p.hintAt) }
