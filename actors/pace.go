package actors

import "time"

// pace decides when a poller looks for due timers of its own accord. All
// instants are local; what the source tells is relative to its clock.
//
// Three things make it look: the next due instant as the source told it, a
// hint that the head was lowered, and the idle ramp, which finds what peers
// scheduled that send no hints. The earliest counts.
type pace struct {
	base, limit time.Duration  // the ramp's first and longest delay
	random      func() float64 // in [0, 1)

	backlog bool      // the last answer said that more is due
	pollAt  time.Time // the ramp's next look; zero while an answer is awaited
	dueAt   time.Time // when something is due as far as we know; zero: nothing

	idle int // looks in vain since something was found: the step of the ramp

	// lost counts looks in a row for something due that was gone: other nodes
	// took it. spread is the random delay that follows from it.
	lost     int
	spread   time.Duration
	expected bool // the look under way is for something due

	// hintSent is the source's clock when the last hint was sent. An answer
	// from before does not know of it.
	hintSent time.Time
	hintAt   time.Time
}

const (
	// maxSpread bounds the delay that spreads many nodes that wait for one timer.
	maxSpread = 50 * time.Millisecond
	// early is how long before its instant a look may come, by rounding and
	// the way to the source, without being counted as one in vain.
	early = 2 * time.Millisecond
)

// ready reports whether it is time to look.
func (p *pace) ready(now time.Time) bool {
	at := p.wakeAt()
	return p.backlog || (!at.IsZero() && !now.Before(at))
}

// wakeAt is when to look next; zero: not before something else happens.
func (p *pace) wakeAt() time.Time {
	if p.dueAt.IsZero() {
		return p.pollAt
	}
	return earlier(p.pollAt, p.dueAt.Add(p.spread))
}

// looking notes that a claim is sent: its answer says when to look next.
func (p *pace) looking(now time.Time) {
	p.expected = !p.dueAt.IsZero() && !now.Before(p.dueAt)
	p.pollAt, p.dueAt = time.Time{}, time.Time{}
}

// soon asks for a look after d at the latest.
func (p *pace) soon(now time.Time, d time.Duration) {
	p.pollAt = earlier(p.pollAt, now.Add(d))
}

// hinted takes a hint: the head is due in after the source's clock said sent.
func (p *pace) hinted(now time.Time, in time.Duration, sent time.Time) {
	p.hintSent, p.hintAt = sent, now.Add(in)
	p.dueAt = earlier(p.dueAt, p.hintAt)
}

// found notes an answer with leases.
func (p *pace) found() { p.idle, p.lost, p.spread = 0, 0, 0 }

// vain notes an answer without leases to a look.
func (p *pace) vain(next time.Duration) {
	p.idle++
	if !p.expected || (next >= 0 && next < early) {
		return
	}
	p.lost++
	p.spread = time.Duration(float64(doubled(time.Millisecond, p.lost, maxSpread)) * p.random())
}

// plan takes what an answer says of the future. sent is when its request went
// out, sourceNow the source's clock in it, next is relative to that clock:
// counted from sent it is early rather than late.
func (p *pace) plan(sent, sourceNow time.Time, next time.Duration) {
	p.pollAt, p.dueAt = sent.Add(p.ramp()), time.Time{}
	if p.backlog = next == 0; next > 0 {
		p.dueAt = sent.Add(next)
	}
	if sourceNow.Before(p.hintSent) {
		p.dueAt = earlier(p.dueAt, p.hintAt)
	}
}

// ramp is the idle backoff of the seeds: base · 2^(n−1), capped, then ±50 %.
// The jitter comes after the cap, so that many topics do not poll in step.
func (p *pace) ramp() time.Duration {
	return spread(doubled(p.base, max(p.idle-1, 0), p.limit), 0.5, p.random())
}

// earlier is the earlier of two instants; zero counts as never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
