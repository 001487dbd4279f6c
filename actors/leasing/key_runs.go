package leasing

import (
	"time"

	"github.com/wakebell/wakebell/actors/guard"
	"github.com/wakebell/wakebell/messages/exchange"
)

// keyRuns is a performance feature: a claim may lease several timers of a key at once, a key run,
// where the key may have one at a time. Their handlers run here one after the other, so that the
// key is handed on without an exchange in between (docs/decisions/0023-keys.md).
// Policy.KeyRun switches it on.
//
// A lease that waits occupies no slot. It begins when the one before it has ended with an outcome
// after which its timer does not come back. If that one is to come back, it keeps the key, and
// the rest of the key run is released: it takes its place behind it again.
type keyRuns struct {
	next map[*Lease]*Lease // that waits, by the one that it follows
}

// keyRun is how many timers of a key a claim may lease at once. Others need the places of those
// that wait where the leases of all nodes are counted, or where keys take turns.
func (c *Core) keyRun() int {
	if f := c.Flow; f.PerKey != 1 || f.KeyRateLimit > 0 || f.FairKeys > 0 || f.MaxInFlight > 0 {
		return 0
	}
	return c.KeyRun
}

// follow makes a lease, which is to be the number-th of run, wait for the one that it follows, and
// reports whether it does.
func (c *Core) follow(run []*Lease, number, follows int, l *Lease) bool {
	run[number] = l
	before := run[follows]
	if before == nil {
		return false
	}
	if c.keyRuns.next == nil {
		c.keyRuns.next = make(map[*Lease]*Lease)
	}
	c.keyRuns.next[before], l.follows = l, true
	return true
}

// passOn begins the next lease of a key run after one that has ended, or releases the rest of it.
func (c *Core) passOn(now time.Time, l *Lease) {
	passes := l.passes && l.refused != exchange.Lost && c.mayGoOn()
	for next := c.keyRuns.next[l]; next != nil; next = c.keyRuns.next[l] {
		delete(c.keyRuns.next, l)
		l, next.follows = next, false
		switch {
		case l.refused == exchange.Cancelled || l.refused == exchange.Superseded: // others of its key go on
			l.stream.drop(l)
		case l.refused != 0 || l.ended: // it is lost, and keeps its place
			l.stream.drop(l)
			passes = false
		case !passes:
			l.stream.drop(l)
			c.release(l)
		default:
			c.begin(now, l)
			return
		}
	}
}

// begin gives a lease that has waited to the handlers. What its stream is to send waits no longer
// for that.
func (c *Core) begin(now time.Time, l *Lease) {
	l.Late, l.Queued = l.Late+now.Sub(l.Queued), now
	claimed, out := l.stream.deliveredAt, c.newHandOver(now)
	out.give(l)
	out.end()
	l.stream.deliveredAt = claimed
	if l.Run.Awaits() && now.Sub(l.confirmed()) > c.LeaseTTL/6 { // its target has the whole lease for its answer
		l.verify, l.stream.extendDue = true, true
	}
}

// mayGoOn reports whether this node may begin leases that wait.
func (c *Core) mayGoOn() bool {
	return c.drain == nil && !c.paused && !c.override.suspends && !c.outage.down &&
		(c.breaker.Breaker == nil || c.breaker.reported == guard.Closed)
}

// returnKeyRuns releases all leases that wait when this node must not begin them.
func (c *Core) returnKeyRuns(now time.Time) {
	if c.mayGoOn() {
		return
	}
	for _, s := range c.streams {
		for i := len(s.held) - 1; i >= 0; i-- { // it drops leases, and the last one takes the place of each
			if i < len(s.held) {
				c.passOn(now, s.held[i])
			}
		}
	}
}
