package leasing

import (
	"cmp"
	"slices"
	"time"

	"github.com/wakebell/wakebell/actors/observe"
)

// early is a performance feature: while a topic delivers steadily, an exchange also
// claims the timers that become due shortly after it, and the poller keeps them until
// they are due. So timers that come one after the other share an exchange without being
// late (docs/decisions/0030-early-claims.md). A Topic.Window of 0 switches it off.
//
// A timer that is kept counts as running: a cancel says so, and tells this node, which
// then does not begin it. If the node dies, the timer comes back when its lease expires.
type early struct {
	leases []*Lease  // kept, the one that is due first in front
	handed time.Time // when timers were last handed out
}

const (
	// maxEarly is how long before its instant a timer is claimed at most. With 20 timers
	// a second it brings six to an exchange.
	maxEarly = 400 * time.Millisecond
	// earlyLeadPart bounds how long before its instant the first of them is claimed, as a
	// fraction of that.
	earlyLeadPart = 4
	// earlyLease bounds that as a fraction of the lease.
	earlyLease = 10
	// maxShareEarly bounds how long timers that are kept wait for others that are due
	// next, so that one wake-up hands out both. It costs less than an exchange.
	maxShareEarly = 3 * time.Millisecond
)

// earlySpan is how long before their instants an exchange of the stream claims timers.
func (c *Core) earlySpan(s *Stream) time.Duration {
	switch {
	case c.window.fixed != AutomaticWindow, c.window.streak < minStreak:
		return 0
	case s.number > 0, c.pace.fallback > 0, c.Flow.On(), c.share.in(), c.breaker.Breaker != nil:
		return 0 // others have a claim to these timers
	case len(c.early.leases) >= c.slots():
		return 0
	}
	return min(maxEarly, c.LeaseTTL/earlyLease)
}

// earlyLead is how long before its instant the next timer is claimed, so that it is not
// late while Redis is busy with the exchanges of other topics. It varies, so that topics
// which began at once do not stay in step. After a reply without timers there is none: the
// next one may be one that cannot be claimed early, and the claim would be empty.
func (c *Core) earlyLead(s *Stream, claimed int, next time.Duration) time.Duration {
	if claimed == 0 {
		return 0
	}
	return min(time.Duration(c.Random()*float64(c.earlySpan(s)/earlyLeadPart)), next/2)
}

// early is how long it takes until the timer of a lease is due; 0: it is. Only a first
// attempt can be early: later ones keep the instant of the first.
func (f *Flight) early(l *Lease, now time.Time) time.Duration {
	if l.Claims > 1 || l.Failures > 0 {
		return 0
	}
	return min(max(l.Activation.Sub(now), 0), f.Request.Ahead)
}

// keep keeps a lease whose timer is due in after now. The source's clock may run slower
// than the local one.
func (c *Core) keep(l *Lease, now time.Time, in time.Duration) {
	l.early, l.Queued = true, now.Add(in+time.Duration(observe.MaxClockDrift*float64(in)))
	at, _ := slices.BinarySearchFunc(c.early.leases, l, func(a, b *Lease) int { return cmp.Compare(a.Queued.Sub(b.Queued), 0) })
	for at < len(c.early.leases) && !c.early.leases[at].Queued.After(l.Queued) {
		at++ // timers of one instant stay in the order of the source
	}
	c.early.leases = slices.Insert(c.early.leases, at, l)
}

// dueEarly is when kept timers are handed out next; zero: none is kept. Like exchanges,
// they share wake-ups of the poller while a window is open.
func (c *Core) dueEarly() time.Time {
	if len(c.early.leases) == 0 {
		return time.Time{}
	}
	return later(c.early.leases[0].Queued, c.early.handed.Add(min(c.window.span(c.LeaseTTL), maxShareEarly)))
}

// handOut hands out the kept timers that are due, or returns all of them when this node
// must not begin them.
func (c *Core) handOut(now time.Time) {
	if len(c.early.leases) == 0 {
		return
	}
	if c.drain != nil || c.paused {
		c.returnEarly()
		return
	}
	if c.override.suspends || now.Before(c.dueEarly()) {
		return
	}
	due := 0
	for due < len(c.early.leases) && !now.Before(c.early.leases[due].Queued) {
		due++
	}
	c.early.handed = now
	out := c.newHandOver(now)
	for _, l := range c.takeEarly(due) {
		l.Late, l.Queued = now.Sub(l.Queued), now
		out.give(l)
	}
	out.end()
}

// takeEarly removes the first n kept leases, and returns those that still hold.
func (c *Core) takeEarly(n int) []*Lease {
	taken := slices.Clone(c.early.leases[:n])
	c.early.leases = slices.Delete(c.early.leases, 0, n)
	return slices.DeleteFunc(taken, func(l *Lease) bool {
		l.early = false
		if l.refused == 0 && !l.ended {
			return false
		}
		l.stream.drop(l)
		return true
	})
}

// returnEarly releases all kept leases.
func (c *Core) returnEarly() {
	for _, l := range c.takeEarly(len(c.early.leases)) {
		l.stream.drop(l)
		c.release(l)
	}
}
