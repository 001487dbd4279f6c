package leasing

import (
	"time"

	"github.com/wakebell/wakebell/actors/guard"
)

// concurrency decides how many handlers run at once.
type concurrency struct {
	limiter *guard.Limiter // nil: as many as MaxConcurrent says
	limit   int            // in force
}

// applyConcurrency puts the number of handlers in force that may run at once.
func (c *Core) applyConcurrency(now time.Time) {
	c.concurrency.limit = c.MaxConcurrent
	if c.concurrency.limiter != nil {
		c.concurrency.limit = c.concurrency.limiter.Limit(c.MaxConcurrent)
		c.Counters.Concurrency.Store(int64(c.concurrency.limit))
	}
	c.share.setBound(c.slots())
	c.Effects.Tune(c.concurrency.limit, min(c.Batch.Wait, c.LeaseTTL/3))
	if c.free() < 0 && c.agenda[excess].IsZero() { // the limit was lowered, and leases may wait
		c.agenda[excess] = now
	}
}

// adaptConcurrency counts the outcome of a delivery for adaptive concurrency.
func (c *Core) adaptConcurrency(now time.Time, l *Lease, o Outcome) {
	if c.concurrency.limiter == nil {
		return
	}
	if o.Took == 0 { // user code has not returned: it panicked, hangs, or settles early
		o.Took = now.Sub(l.deliveredAt)
	}
	running := 1 + c.Leases() - len(c.keyRuns.next) // l is no longer held
	c.concurrency.limiter.Record(now, guard.Sample{
		Took: o.Took, Failed: o.Kind != Succeeded, Further: o.Further, Small: o.Small, Running: (running + c.perSlot() - 1) / c.perSlot(),
	}, c.MaxConcurrent)
	if c.concurrency.limiter.Limit(c.MaxConcurrent) != c.concurrency.limit {
		c.applyConcurrency(now)
	}
}
