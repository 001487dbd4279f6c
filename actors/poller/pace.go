package poller

import (
	"time"

	"github.com/wakebell/wakebell/actors/internal/host"
)

// pace decides when a poller looks for due timers of its own accord. All
// instants are local; what the source tells is relative to its clock.
//
// Four things make it look: the next due instant as the source told it, a hint
// that the head was lowered, the idle ramp, which finds what peers scheduled
// that send no hints, and the poller that asks for one. The earliest counts.
type pace struct {
	base, limit time.Duration  // the ramp's first and longest delay
	random      func() float64 // in [0, 1)

	backlog     bool      // the last answer said that more is due
	pollAt      time.Time // the ramp's next look; zero while an answer is awaited
	requestedAt time.Time // a look that was asked for; zero: none
	dueAt       time.Time // when something is due as the last answer told; zero: nothing
	dueBySource time.Time // the same by the source's clock

	// hintAt is when something is due as a hint told; zero: nothing. It stays
	// until an answer surely knows of it: one to a request that was made after
	// the hint had come (hints counts them), or one from a later instant of the
	// source's clock than hintSent.
	hintAt, hintSent time.Time
	hintBySource     time.Time // hintAt by the source's clock
	hints            int
	answeredHints    int // those that had come when the last answered request was made

	emptyPolls int // looks in vain since something was found: the step of the ramp

	// lost rises with every look for something due that was gone, for other nodes
	// took it, and falls twice as fast with every one that finds: of many nodes
	// that wait for the same timers, those that are often the first stay in front,
	// and the others stay back. spread is the random delay that follows from it.
	// Invariant: 0 <= lost <= mostLost.
	lostRaces       int
	contentionDelay time.Duration
	expected        time.Time // when what the look under way is for is due, by the source's clock; zero: nothing is
}

const (
	// maxSpread bounds the delay that spreads many nodes that wait for one timer.
	maxContentionDelay = 50 * time.Millisecond
	// mostLost is where the spread is at its largest: a node that is alone from
	// then on is in front again after four timers.
	maxLostRaces = 7
)

// ready reports whether it is time to look.
func (p *pace) ready(now time.Time) bool {
	at := p.wakeAt()
	return p.backlog || (!at.IsZero() && !now.Before(at))
}

// wakeAt is when to look next; zero: not before something else happens.
func (p *pace) wakeAt() time.Time {
	at := earlier(p.pollAt, p.requestedAt)
	if due := earlier(p.dueAt, p.hintAt); !due.IsZero() {
		at = earlier(at, due.Add(p.contentionDelay))
	}
	return at
}

// looking notes that a claim is sent: its answer says when to look next.
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

// soon asks for a look after d at the latest. The answer to one that is under
// way does not do.
func (p *pace) pollWithin(now time.Time, d time.Duration) {
	p.requestedAt = earlier(p.requestedAt, now.Add(d))
}

// hinted takes a hint: the head is due in after the source's clock said sent.
func (p *pace) handleHint(now time.Time, in time.Duration, sent time.Time) {
	p.hints++
	if at := now.Add(in); p.hintAt.IsZero() || at.Before(p.hintAt) {
		p.hintAt, p.hintBySource = at, sent.Add(in)
	}
	p.hintSent = sent
}

// found notes an answer with leases.
func (p *pace) found() {
	p.emptyPolls = 0
	p.adjustForContention(-2)
}

// vain notes an answer without leases to a look. One that came before its time,
// by a rounding, has lost nothing.
func (p *pace) emptyPoll(sourceNow time.Time) {
	p.emptyPolls++
	if !p.expected.IsZero() && !sourceNow.Before(p.expected) {
		p.adjustForContention(1)
	}
}

// fall moves this node back, or to the front.
func (p *pace) adjustForContention(by int) {
	p.lostRaces = min(max(p.lostRaces+by, 0), maxLostRaces)
	p.contentionDelay = 0
	if p.lostRaces > 0 {
		p.contentionDelay = time.Duration(float64(host.ExponentialDelay(time.Millisecond, p.lostRaces, maxContentionDelay)) * p.random())
	}
	if p.lostRaces == maxLostRaces { // others are in front for long: stay well back
		p.contentionDelay = (maxContentionDelay + p.contentionDelay) / 2
	}
}

// plan takes what an answer says of the future. sent is when its request went
// out, hints what p.hints was when it was made, sourceNow the source's clock in
// the answer. next is relative to that clock: counted from sent it is early
// rather than late.
func (p *pace) plan(sent time.Time, hints int, sourceNow time.Time, next time.Duration) {
	p.pollAt, p.dueAt, p.dueBySource = sent.Add(p.idleBackoff()), time.Time{}, time.Time{}
	if p.backlog = next == 0; next > 0 {
		p.dueAt, p.dueBySource = sent.Add(next), sourceNow.Add(next)
	}
	p.answeredHints = hints
	if hints == p.hints || sourceNow.After(p.hintSent) {
		p.hintAt = time.Time{}
	}
}

// ramp is the idle backoff of the seeds: base · 2^(n−1), capped, then ±50 %.
// The jitter comes after the cap, so that many topics do not poll in step.
func (p *pace) idleBackoff() time.Duration {
	return host.Jitter(host.ExponentialDelay(p.base, max(p.emptyPolls-1, 0), p.limit), 0.5, p.random())
}

// earlier is the earlier of two instants; zero counts as never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
