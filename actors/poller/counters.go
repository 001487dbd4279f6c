package poller

import (
	"sync/atomic"
	"time"

	"github.com/wakebell/wakebell/wakebelltype"
)

// counters is the live form of Counters.
type counters struct {
	delivered, acked, retried, deadLettered, discarded, released, crashed,
	superseded, cancelled, lost, hung, orphansRemoved, exchanges, empty, peeks, errors,
	hookCalls, hookSkipped, hookPanics, incarnations, clockSteps, lastExchange,
	repeated, rejected, rejectedAcks, finalErrors, heartbeatsFailed, prefetchReturned, handlerRestarts, held, throttled, keyThrottled, breakerOpen, breakerOpened, concurrency,
	fallbackDelivered, helpRequests, started, lateness, maxLateness atomic.Int64

	role atomic.Pointer[string] // in the division of the topic; nil: none
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
		KeyThrottled:     c.keyThrottled.Load(),
		Concurrency:      c.concurrency.Load(),

		FallbackDelivered: c.fallbackDelivered.Load(),
		HelpRequests:      c.helpRequests.Load(),
	}
	if role := c.role.Load(); role != nil {
		s.Role = *role
	}
	if nanos := c.lastExchange.Load(); nanos != 0 {
		s.LastExchange = time.Unix(0, nanos)
	}
	return s
}

// countHeld notes how many leases this incarnation holds.
func (p *poller) countHeld() {
	held := 0
	for _, s := range p.streams {
		held += len(s.held)
	}
	p.Counters.held.Store(int64(held))
}
