package leasing

import (
	"cmp"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
)

const (
	// reportEvery is how often a node repeats its report, if Policy.ReportInterval does not say.
	reportEvery = 30 * time.Second
	// reportPause is how long a change of what changes often waits for others.
	reportPause = 5 * time.Second
)

// reports decides when the state of this node is stored for operators.
type reports struct {
	sending bool
	last    time.Time // when the last one was sent; zero: none was
	sent    reported
}

// reported is what the last report had of what changes.
type reported struct {
	breaker     int32 // its changes
	concurrency int
	flow        exchange.Flow
	runs        int // changes of the handlers that run for long
	withdrawn   bool
}

// mayReport reports whether the topic has something that operators want to know: a
// circuit breaker, adaptive concurrency, a group, limits over all nodes, an expiry, or handlers
// that run for long.
func (c *Core) mayReport() bool {
	return c.Reports && (c.breaker.Breaker != nil || c.concurrency.limiter != nil || c.Group != nil || c.Flow.On() || c.Flow.ByKey() ||
		c.ExpireAfter > 0 || len(c.longRuns.known) > 0)
}

// report sends the report that is due, and none for each delivery: a change of the breaker
// at once, others at intervals. A drain removes it.
func (c *Core) report(now time.Time) {
	c.agenda[reportState] = time.Time{}
	if c.reports == nil {
		if !c.mayReport() {
			return
		}
		c.reports = &reports{}
	}
	r, is := c.reports, reported{breaker: c.breaker.changes, concurrency: c.concurrency.limit, flow: c.Flow, runs: c.longRuns.changes, withdrawn: c.drain != nil || !c.mayReport()}
	if c.outage.down || r.sending || is.withdrawn && (r.last.IsZero() || r.sent.withdrawn) {
		return
	}
	at := r.last.Add(c.ReportEvery())
	switch {
	case r.last.IsZero(), is.breaker != r.sent.breaker, is.withdrawn != r.sent.withdrawn:
		at = now
	case is != r.sent:
		at = r.last.Add(reportPause)
	}
	if now.Before(at) {
		c.agenda[reportState] = at
		return
	}
	r.sending, r.last, r.sent = true, now, is
	c.Effects.Report(is.withdrawn)
}

// ReportEvery is how often a node repeats its report.
func (p *Policy) ReportEvery() time.Duration { return cmp.Or(p.ReportInterval, reportEvery) }

// Reported notes that a report has been stored, or failed: the next one will be.
func (c *Core) Reported() { c.reports.sending = false }
