package guard

import (
	"time"

	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	// minSamples is the least number of outcomes of a window.
	minSamples = 10
	// probeEvery is the number of windows until the latency without load is measured
	// again, with half of the limit for one window.
	probeEvery = 50
	// errorFactor is by what a window with too many failures multiplies the limit.
	errorFactor = 0.75
	// leastFactor bounds what a slow window multiplies the limit by.
	leastFactor = 0.5
	// growth is by which part of itself the limit grows once the handler has been slow.
	growth = 0.1
)

// Limiter finds how many handlers of a topic should run at once on a node. It compares
// the mean latency of a window of outcomes with the latency that it measured under less
// load. Below half of the slowdown that is allowed, the limit grows: it doubles until
// a first window is too slow, then it grows by a tenth. Above it, the limit shrinks by
// as much as the window was too slow. The methods are called by one goroutine.
type Limiter struct {
	set   wakebelltype.Adaptive
	limit float64
	base  time.Duration // mean latency under little load; 0: not known
	quick bool          // the limit doubles

	windows int     // since the last probe
	probed  float64 // limit to return to after the probe; 0: none runs

	since         time.Time // when the window began; earlier deliveries do not count
	total, failed int       // deliveries
	calls         int
	samples       int // calls with a latency
	sum           time.Duration
	used          bool // more than half of the limit ran at once
}

// NewLimiter returns a limiter that begins with the lower bound.
func NewLimiter(set wakebelltype.Adaptive, now time.Time) *Limiter {
	return &Limiter{set: set, limit: float64(set.Min), quick: true, since: now}
}

// Limit returns how many handlers may run at once, at least Min and at most bound, which
// precedes Min.
func (l *Limiter) Limit(bound int) int {
	return min(max(int(l.limit+0.5), l.set.Min), bound)
}

// Sample is the outcome of a delivery.
type Sample struct {
	Took    time.Duration // of the call of the handler
	Failed  bool
	Further bool // another delivery of the same call was recorded
	Small   bool // the call had few deliveries, and says nothing about the latency
	Running int  // handlers that ran at once, this one included
}

// Record counts an outcome, and changes the limit at the end of a window. bound is the
// upper bound of the limit.
func (l *Limiter) Record(now time.Time, s Sample, bound int) {
	if began := now.Add(-s.Took); began.Before(l.since) {
		return // it ran under the limit of before
	}
	limit := l.Limit(bound)
	l.total, l.failed = l.total+1, l.failed+count(s.Failed)
	if !s.Further {
		l.calls++
	}
	if !s.Failed && !s.Further && !s.Small { // failures are often quick
		l.samples, l.sum = l.samples+1, l.sum+s.Took
	}
	l.used = l.used || 2*s.Running > limit
	if l.calls < max(minSamples, limit) {
		return
	}
	l.adjust(float64(limit), bound)
	l.limit = min(max(l.limit, float64(l.set.Min)), float64(bound))
	l.since, l.total, l.failed, l.calls, l.samples, l.sum, l.used = now, 0, 0, 0, 0, 0, false
}

// adjust changes the limit by the window.
func (l *Limiter) adjust(limit float64, bound int) {
	if float64(l.failed) >= l.set.FailureRatio*float64(l.total) {
		l.limit, l.quick, l.probed = limit*errorFactor, false, 0
		return
	}
	if l.samples == 0 {
		return
	}
	latency := max(l.sum/time.Duration(l.samples), 1)
	if l.probed > 0 { // the window of a probe
		l.base, l.limit, l.probed = latency, l.probed, 0
		return
	}
	if l.base == 0 || latency < l.base {
		l.base = latency
	}
	slowdown := float64(latency) / float64(l.base)
	if l.windows++; l.windows >= probeEvery && limit > float64(min(l.set.Min, bound)) {
		l.windows, l.probed, l.limit = 0, limit, limit/2
		return
	}
	switch {
	case slowdown > l.set.Slowdown && limit <= float64(min(l.set.Min, bound)):
		// Under the least load this is what the handler takes.
		l.base, l.quick = latency, true
	case slowdown > l.set.Slowdown:
		l.limit, l.quick = limit*max(l.set.Slowdown/slowdown, leastFactor), false
	case !l.used || slowdown > 1+(l.set.Slowdown-1)/2:
	case l.quick:
		l.limit = limit * 2
	default:
		l.limit = limit + max(limit*growth, 1)
	}
}
