package leasing

import "time"

// cause is why a core has to act at an instant.
type cause int

const (
	// What does not need Redis comes first.
	examine cause = iota // a lease has to be extended, expires, or is too old
	watch                // handlers may have run for long
	settle               // settlements that wait for others are sent
	keptDue              // kept timers are handed out
	excess               // a lease may have waited too long for a handler
	phase                // a phase of a drain ends
	// Nothing of the following is due while Redis is down.
	poll         // the next poll
	resend       // a failed exchange is sent again
	readOverride // the override is read
	ask          // whether the settings have changed, while they let the core claim nothing
	announce     // the division of the topic
	help         // other nodes are asked for help
	reportState  // the state of this node is stored for operators
	halfOpen     // the breaker tries a timer
	causes

	tick = causes // when the caller was asked to tick next; zero: it was not
)

// needsRedis is the first cause that waits while Redis is down.
const needsRedis = poll

// agenda has the next instant of each cause; zero: there is none. It says when to look
// again, and no more: what is done then depends on the state.
type agenda [causes + 1]time.Time

// due reports whether the instant of a cause has come.
func (a *agenda) due(c cause, now time.Time) bool { return !a[c].IsZero() && !now.Before(a[c]) }

// by moves the instant of a cause forward to at.
func (a *agenda) by(c cause, at time.Time) { a[c] = earlier(a[c], at) }

// next is the first instant of all causes, or of those before end.
func (a *agenda) next(end cause) (at time.Time) {
	for _, each := range a[:end] {
		at = earlier(at, each)
	}
	return at
}

// wake returns the instant of the next tick, unless an earlier one is on its way. An early
// tick is harmless, so the instant is only moved forward, and otherwise only to the steps in
// which the end of a window is waited for.
func (c *Core) wake(now time.Time) time.Time {
	at, step := c.nextWork(), time.Duration(0)
	if at.IsZero() {
		return at
	}
	if c.endsWindow(at) {
		at, step = inSteps(now, at), timerStep
	}
	if armed := c.agenda[tick]; !armed.IsZero() && !at.Before(armed) && at.Sub(armed) >= step {
		return time.Time{}
	}
	c.agenda[tick] = at
	return at
}

// nextWork is the next instant at which there is work; zero: there is none to wait for.
func (c *Core) nextWork() time.Time {
	c.agenda[keptDue] = time.Time{}
	if !c.override.suspends {
		c.agenda[keptDue] = c.dueEarly()
	}
	if c.outage.down {
		return c.agenda.next(needsRedis)
	}
	c.agenda[halfOpen], c.agenda[resend] = time.Time{}, time.Time{}
	if c.breaker.Breaker != nil {
		c.agenda[halfOpen] = c.breaker.Until()
	}
	for _, s := range c.streams {
		c.agenda.by(resend, s.retryAt)
	}
	return c.agenda.next(causes)
}

// later is the later of two instants; a zero a stays zero.
func later(a, b time.Time) time.Time {
	if !a.IsZero() && a.Before(b) {
		return b
	}
	return a
}

// earlier is the earlier of two instants; zero counts as never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
