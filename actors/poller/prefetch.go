package poller

import "time"

// ahead decides how many leases a poller claims beyond those that its handlers
// can begin at once, so that quick handlers need not wait for the round trip:
// as many as the handlers finish within aheadFor, at the rate that they had
// lately. A lease that waits longer than patience, because the handlers have
// become slow, goes back to the source for other nodes.
type prefetch struct {
	limit int // leases

	since    time.Time // when the rate began to be measured
	finished int       // leases done with since then, within patience each
	checkAt  time.Time // when to look for leases that wait too long; zero: none waits
}

const (
	prefetchSpan = 4 * time.Millisecond
	// rateOver is how long a rate is measured at least.
	rateWindow  = 5 * time.Millisecond
	maxPrefetch = 4 * maxClaim
	// Patience is how long a lease may wait for a handler before it is given back.
	MaxPrefetchWait = 2 * prefetchSpan
)

// count notes that a lease is done with. Handlers that take longer than patience
// do not count: many of them that finish together would look like quick ones.
func (a *prefetch) countFinished(l *lease, now time.Time) {
	if now.Sub(l.queued) < MaxPrefetchWait {
		a.finished++
	}
}

// measure sets the limit by the rate, once it has been measured for long enough.
func (a *prefetch) measure(now time.Time) {
	took := now.Sub(a.since)
	if took < rateWindow {
		return
	}
	a.limit = int(min(int64(a.finished)*int64(prefetchSpan)/int64(took), maxPrefetch))
	a.since, a.finished = now, 0
}

// shed releases the leases that have waited longer than patience for a handler,
// as far as they are more than there are handlers.
func (p *poller) returnExcess(now time.Time) {
	if p.prefetch.checkAt.IsZero() || now.Before(p.prefetch.checkAt) {
		return
	}
	p.prefetch.checkAt = time.Time{}
	oldest := p.queue.oldestQueued()
	if oldest.IsZero() {
		return
	}
	if at := oldest.Add(MaxPrefetchWait); now.Before(at) {
		p.prefetch.checkAt = at
		return
	}
	p.prefetch = prefetch{since: now}
	p.returnUnstarted(max(0, -p.free()))
}

// giveBack releases the last n leases that no handler has begun.
func (p *poller) returnUnstarted(n int) {
	for _, l := range p.queue.takeLast(n) {
		l.stream.drop(l)
		if l.refused == 0 {
			p.releaseLease(l)
		}
	}
}
