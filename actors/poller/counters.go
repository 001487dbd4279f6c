package poller

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/wakebell/wakebell/actors/guard"
	"github.com/wakebell/wakebell/wakebelltype"
)

// counters is the live form of Counters.
type counters struct {
	delivered, acked, retried, deadLettered, discarded, released, crashed,
	superseded, cancelled, lost, hung, orphansRemoved, exchanges, empty, peeks, errors,
	hookCalls, hookSkipped, hookPanics, incarnations, clockSteps, lastExchange,
	repeated, rejected, rejectedAcks, finalErrors, heartbeatsFailed, prefetchReturned, handlerRestarts, held, throttled, breakerOpen, breakerOpened, fallbackDelivered, helpRequests atomic.Int64
}

func (c *counters) Snapshot() wakebelltype.Counters {
	s := wakebelltype.Counters{
		// Parts are read before the counters that contain them, so that what remains
		// never decreases.
		Repeated:     c.repeated.Load(),
		Rejected:     c.rejected.Load(),
		RejectedAcks: c.rejectedAcks.Load(),

		Delivered:      c.delivered.Load(),
		Acked:          c.acked.Load(),
		Retried:        c.retried.Load(),
		DeadLettered:   c.deadLettered.Load(),
		Discarded:      c.discarded.Load(),
		Released:       c.released.Load(),
		Crashed:        c.crashed.Load(),
		Superseded:     c.superseded.Load(),
		Cancelled:      c.cancelled.Load(),
		Lost:           c.lost.Load(),
		Hung:           c.hung.Load(),
		OrphansRemoved: c.orphansRemoved.Load(),
		Exchanges:      c.exchanges.Load(),
		Empty:          c.empty.Load(),
		Peeks:          c.peeks.Load(),
		Errors:         c.errors.Load(),
		ClockSteps:     c.clockSteps.Load(),
		Restarts:       max(c.incarnations.Load()-1, 0),
		HookCalls:      c.hookCalls.Load(),
		HookSkipped:    c.hookSkipped.Load(),
		HookPanics:     c.hookPanics.Load(),

		HeartbeatsFailed: c.heartbeatsFailed.Load(),
		PrefetchReturned: c.prefetchReturned.Load(),
		HandlerRestarts:  c.handlerRestarts.Load(),
		Held:             c.held.Load(),
		BreakerOpen:      c.breakerOpen.Load(),
		BreakerOpened:    c.breakerOpened.Load(),
		Throttled:        c.throttled.Load(),

		FallbackDelivered: c.fallbackDelivered.Load(),
		HelpRequests:      c.helpRequests.Load(),
	}
	if nanos := c.lastExchange.Load(); nanos != 0 {
		s.LastExchange = time.Unix(0, nanos)
	}
	return s
}

// breakerAllows reports whether the circuit breaker permits a claim: none while it is
// open, and one timer at a time while it is half-open.
func (p *poller) breakerAllows() bool {
	if p.breaker == nil {
		return true
	}
	switch p.breaker.State(time.Now()) {
	case guard.Open:
		return false
	case guard.HalfOpen:
		return !p.testing()
	default:
		return true
	}
}

// testing reports whether the claim that decides about a half-open breaker is in flight,
// or its timer is held.
func (p *poller) testing() bool {
	generation := p.breaker.Generation()
	for _, s := range p.streams {
		if s.flight != nil && s.flight.request.Want > 0 && s.flight.generation == generation {
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

// recordOutcome counts the outcome of a delivery for the breaker. What says nothing about
// the handler does not count: a timer that was released, cancelled or lost, and a body
// that cannot be decoded.
func (p *poller) recordOutcome(l *lease, o Outcome) {
	if p.breaker == nil || o.kind == released || o.kind == skipped || o.kind == undeliverable {
		return
	}
	change, changed := p.breaker.Record(l.generation, time.Now(), o.kind != succeeded)
	switch {
	case !changed:
	case change.To == guard.Open:
		p.Counters.breakerOpen.Store(1)
		p.Counters.breakerOpened.Add(1)
		p.Logger.Warn("circuit breaker opened; the topic is paused on this node",
			"failures", change.Failed, "deliveries", change.Delivered, "duration", p.Breaker.OpenFor, "err", o.err)
		p.returnUnstarted(math.MaxInt32)
	default:
		p.Counters.breakerOpen.Store(0)
		p.Logger.Info("circuit breaker closed")
		p.pace.pollWithin(time.Now(), 0)
	}
}

// countHeld notes how many leases this incarnation holds.
func (p *poller) countHeld() {
	held := 0
	for _, s := range p.streams {
		held += len(s.held)
	}
	p.Counters.held.Store(int64(held))
}
