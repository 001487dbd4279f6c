package leasing

import "time"

// prefetch is a performance feature: quick handlers need not wait for a round
// trip between two timers. With handlers of 100 µs it multiplies throughput; with
// handlers of over 10 ms it does nothing (docs/decisions/0008-claiming-ahead.md).
// It decides how many leases a poller claims beyond its free handlers: as many as
// the handlers finish within prefetchSpan, at their recent rate. A lease that
// waits longer than MaxPrefetchWait for a handler, because handlers have become
// slow, is released for other nodes. Topic.NoPrefetch switches it off.
type prefetch struct {
	limit int // leases

	since    time.Time // when the current measurement began
	finished int       // leases finished since then, each within MaxPrefetchWait
}

const (
	prefetchSpan = 4 * time.Millisecond
	// rateWindow is the minimum duration of a measurement.
	rateWindow  = 5 * time.Millisecond
	maxPrefetch = 4 * maxClaim
	// MaxPrefetchWait is how long a lease may wait for a handler before it is
	// released.
	MaxPrefetchWait = 2 * prefetchSpan
)

// countFinished counts a finished lease. Handlers that take longer than
// MaxPrefetchWait do not count: many of them that finish together would look like
// quick ones.
func (a *prefetch) countFinished(l *Lease, now time.Time) {
	if now.Sub(l.Queued) < MaxPrefetchWait {
		a.finished++
	}
}

// measure sets the limit from the rate, once it was measured for long enough.
func (a *prefetch) measure(now time.Time) {
	took := now.Sub(a.since)
	if took < rateWindow {
		return
	}
	a.limit = int(min(int64(a.finished)*int64(prefetchSpan)/int64(took), maxPrefetch))
	a.since, a.finished = now, 0
}

// setPrefetch sets how many leases are claimed beyond the free handlers.
func (c *Core) setPrefetch(now time.Time) {
	switch {
	case c.NoPrefetch:
	case c.Flow.MaxInFlight > 0 || c.share.in(): // a lease that waits would keep another from being handled
		c.prefetch.limit = 0
	default:
		c.prefetch.measure(now)
	}
}

// returnExcess releases the leases that have waited longer than MaxPrefetchWait
// for a handler, as far as there are more leases than handlers.
func (c *Core) returnExcess(now time.Time) {
	if !c.agenda.due(excess, now) {
		return
	}
	c.agenda[excess] = time.Time{}
	oldest := c.Effects.Oldest()
	if oldest.IsZero() {
		return
	}
	if at := oldest.Add(MaxPrefetchWait); now.Before(at) {
		c.agenda[excess] = at
		return
	}
	c.prefetch = prefetch{since: now}
	c.Counters.PrefetchReturned.Add(int64(c.returnUnstarted(now, max(0, -c.free()))))
}

// returnUnstarted releases the last n leases that no handler has begun, and returns
// how many there were.
func (c *Core) returnUnstarted(now time.Time, n int) int {
	unstarted := c.Effects.TakeBack(n)
	for _, l := range unstarted {
		l.stream.drop(l)
		if l.refused == 0 {
			c.release(l)
		}
		c.passOn(now, l)
	}
	return len(unstarted)
}
