package leasing

import (
	"math"
	"time"

	"github.com/wakebell/wakebell/actors/guard"
)

// breaker is the circuit breaker of the topic on this node. It decides whether the handlers
// may have another timer.
type breaker struct {
	*guard.Breaker // nil: none

	reported guard.State // as last reported
	changes  int32       // reported so far
}

// breakerAllows reports whether the circuit breaker permits a claim: none while it is
// open, and one timer at a time while it is half-open.
func (c *Core) breakerAllows(now time.Time) bool {
	if c.breaker.Breaker == nil {
		return true
	}
	switch c.breaker.State(now) {
	case guard.Open:
		return false
	case guard.HalfOpen:
		return !c.testing()
	default:
		return true
	}
}

// testing reports whether the claim that decides about a half-open breaker is in
// flight, or its timer is held.
func (c *Core) testing() bool {
	generation := c.breaker.Generation()
	for _, s := range c.streams {
		if s.flight != nil && s.flight.Request.Want > 0 && s.flight.generation == generation {
			return true
		}
		for _, l := range s.held {
			if l.generation == generation {
				return true
			}
		}
	}
	return false
}

// countOutcome counts the outcome of a delivery for the breaker and for adaptive
// concurrency. An outcome that says nothing about the handler does not count: a timer
// that was released, snoozed, expired, cancelled or lost, and a body that cannot be decoded.
func (c *Core) countOutcome(now time.Time, l *Lease, o Outcome) {
	if saysNothing[o.Kind] {
		return
	}
	if l.slot < 0 { // else its handler continues
		c.adaptConcurrency(now, l, o)
	}
	if c.breaker.Breaker == nil {
		return
	}
	change, changed := c.breaker.Record(l.generation, now, o.Kind != Succeeded)
	if changed {
		c.breakerChanged(now, change, o.Reason)
	}
}

// watchBreaker notes that an open breaker has become half-open, which no outcome
// causes.
func (c *Core) watchBreaker(now time.Time) {
	if c.breaker.Breaker != nil && c.breaker.reported == guard.Open && c.breaker.State(now) == guard.HalfOpen {
		c.breakerChanged(now, guard.Change{To: guard.HalfOpen}, "")
	}
}

// breakerChanged reports a change of the breaker and applies it. failure is the reason of
// the failure that opened it.
func (c *Core) breakerChanged(now time.Time, change guard.Change, failure string) {
	c.breaker.reported = change.To
	c.breaker.changes++
	switch change.To {
	case guard.Open:
		c.Counters.BreakerOpen.Store(1)
		c.Counters.BreakerOpened.Add(1)
		c.returnUnstarted(now, math.MaxInt32)
	case guard.HalfOpen:
	case guard.Closed:
		c.Counters.BreakerOpen.Store(0)
		c.pace.pollWithin(now, 0)
	}
	c.Effects.BreakerChanged(change, c.breaker.Until(), failure)
}
