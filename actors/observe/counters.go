package observe

import (
	"sync/atomic"
	"time"

	"github.com/wakebell/wakebell/wakebelltype"
)

// Counters counts what happens to the timers of a topic on this node. It outlives a crash of
// the poller.
type Counters struct {
	Delivered, Acked, Retried, DeadLettered, Discarded, Released, Crashed,
	Superseded, Cancelled, Lost, Hung, OrphansRemoved, Exchanges, Empty, Peeks, Errors,
	HookCalls, HookSkipped, HookPanics, Incarnations, ClockSteps, LastExchange,
	Repeated, Rejected, RejectedAcks, FinalErrors, HeartbeatsFailed, PrefetchReturned, HandlerRestarts, Held, Throttled, KeyThrottled, Snoozed, Expired, ExpiredDead, BreakerOpen, BreakerOpened, Concurrency,
	OrphansHeld, PayloadsMissing, FallbackDelivered, HelpRequests, Started, Lateness, MaxLateness atomic.Int64

	latenesses atomic.Pointer[latenesses] // nil: nothing was counted

	Role     atomic.Pointer[string]                 // in the division of the topic; nil: none
	LongRuns atomic.Pointer[[]wakebelltype.LongRun] // the longest first; nil: none
}

// latenesses are counts of timers by their lateness, as in wakebelltype.Latenesses.
type latenesses [len(wakebelltype.Latenesses{})]atomic.Int64

// Snapshot returns the counts so far.
func (c *Counters) Snapshot() wakebelltype.Counters {
	s := wakebelltype.Counters{
		// Parts are read before the counters that contain them, so that what remains
		// never decreases.
		Repeated:     c.Repeated.Load(),
		Rejected:     c.Rejected.Load(),
		RejectedAcks: c.RejectedAcks.Load(),

		PayloadsMissing: c.PayloadsMissing.Load(),

		Delivered:      c.Delivered.Load(),
		Acked:          c.Acked.Load(),
		Retried:        c.Retried.Load(),
		Snoozed:        c.Snoozed.Load(),
		Expired:        c.Expired.Load(),
		ExpiredDead:    c.ExpiredDead.Load(),
		DeadLettered:   c.DeadLettered.Load(),
		Discarded:      c.Discarded.Load(),
		Released:       c.Released.Load(),
		Crashed:        c.Crashed.Load(),
		Superseded:     c.Superseded.Load(),
		Cancelled:      c.Cancelled.Load(),
		Lost:           c.Lost.Load(),
		Hung:           c.Hung.Load(),
		OrphansRemoved: c.OrphansRemoved.Load(),
		OrphansHeld:    c.OrphansHeld.Load(),
		Exchanges:      c.Exchanges.Load(),
		Empty:          c.Empty.Load(),
		Peeks:          c.Peeks.Load(),
		Errors:         c.Errors.Load(),
		ClockSteps:     c.ClockSteps.Load(),
		Restarts:       max(c.Incarnations.Load()-1, 0),
		HookCalls:      c.HookCalls.Load(),
		HookSkipped:    c.HookSkipped.Load(),
		HookPanics:     c.HookPanics.Load(),

		HeartbeatsFailed: c.HeartbeatsFailed.Load(),
		PrefetchReturned: c.PrefetchReturned.Load(),
		HandlerRestarts:  c.HandlerRestarts.Load(),
		Held:             c.Held.Load(),
		BreakerOpen:      c.BreakerOpen.Load(),
		BreakerOpened:    c.BreakerOpened.Load(),
		Throttled:        c.Throttled.Load(),
		KeyThrottled:     c.KeyThrottled.Load(),
		Concurrency:      c.Concurrency.Load(),

		FallbackDelivered: c.FallbackDelivered.Load(),
		HelpRequests:      c.HelpRequests.Load(),
	}
	if role := c.Role.Load(); role != nil {
		s.Role = *role
	}
	if nanos := c.LastExchange.Load(); nanos != 0 {
		s.LastExchange = time.Unix(0, nanos)
	}
	return s
}

// recorded returns what is kept in the source of the topic.
func (c *Counters) recorded() totals {
	t := totals{
		Handled: -c.RejectedAcks.Load() + c.Acked.Load(), // the part first, as in Snapshot
		Failed:  c.Retried.Load() + c.Crashed.Load() + c.FinalErrors.Load(),
		Dead:    c.DeadLettered.Load(),
		Started: c.Started.Load(), Lateness: time.Duration(c.Lateness.Load()),
	}
	if counted := c.latenesses.Load(); counted != nil {
		for i := range counted {
			t.Latenesses[i] = counted[i].Load()
		}
	}
	return t
}

// latest returns the largest lateness since it was called last.
func (c *Counters) latest() time.Duration { return time.Duration(c.MaxLateness.Swap(0)) }

// CountLateness counts first attempts whose lateness is sum together and at most most, and
// that are divided like by.
func (c *Counters) CountLateness(first int, sum, most time.Duration, by *wakebelltype.Latenesses) {
	if first == 0 {
		return
	}
	counted := c.latenesses.Load()
	if counted == nil {
		c.latenesses.CompareAndSwap(nil, &latenesses{})
		counted = c.latenesses.Load()
	}
	for i, n := range by {
		if n != 0 {
			counted[i].Add(n)
		}
	}
	c.Started.Add(int64(first))
	c.Lateness.Add(int64(sum))
	for {
		known := c.MaxLateness.Load()
		if int64(most) <= known || c.MaxLateness.CompareAndSwap(known, int64(most)) {
			return
		}
	}
}
