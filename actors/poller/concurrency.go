package poller

import (
	"time"

	"github.com/wakebell/wakebell/actors/guard"
)

// slots is the number of leases that the handlers can have at once.
func (p *poller) slots() int {
	if p.Batch.Size == 0 {
		return p.concurrency
	}
	return min(p.concurrency*p.Batch.Size, maxBatched)
}

// applyConcurrency puts the number of handlers in force that may run at once.
func (p *poller) applyConcurrency() {
	p.concurrency = p.MaxConcurrent
	if p.limiter != nil {
		p.concurrency = p.limiter.Limit(p.MaxConcurrent)
		p.Counters.Concurrency.Store(int64(p.concurrency))
	}
	if p.share != nil {
		p.share.SetBound(p.slots())
	}
	p.queue.tune(p.concurrency, min(p.Batch.Wait, p.LeaseTTL/3))
}

// adaptConcurrency counts the outcome of a delivery for adaptive concurrency.
func (p *poller) adaptConcurrency(l *lease, o Outcome) {
	if p.limiter == nil {
		return
	}
	now := time.Now()
	if o.took == 0 { // user code has not returned: it panicked, hangs, or settles early
		o.took = now.Sub(l.deliveredAt)
	}
	running := 1 // l is no longer held
	for _, s := range p.streams {
		running += len(s.held)
	}
	p.limiter.Record(now, guard.Sample{
		Took: o.took, Failed: o.kind != succeeded, Further: o.further, Small: o.small, Running: (running + p.perSlot() - 1) / p.perSlot(),
	}, p.MaxConcurrent)
	if p.limiter.Limit(p.MaxConcurrent) != p.concurrency {
		p.applyConcurrency()
	}
}

// begins returns the present, if the duration of user code is measured.
func (w *worker) begins() (began time.Time) {
	if w.measures {
		began = time.Now()
	}
	return began
}

// since returns how long user code took, if that is measured.
func (w *worker) since(began time.Time) time.Duration {
	if !w.measures {
		return 0
	}
	return max(time.Since(began), 1)
}

// measureBatch notes how long a call took. A small batch says nothing about the latency,
// because calls take longer the more timers they have.
func (w *worker) measureBatch(began time.Time, b *batch, outcomes []Outcome) {
	if !w.measures {
		return
	}
	for i := range outcomes {
		o := &outcomes[i]
		o.took, o.further, o.small = w.since(began), i > 0, len(outcomes) <= b.vacant
	}
}

// enterGroup joins the group of the topic, which wakes the poller when a place is free, or
// that of its shards. It does so again when the number of shards has changed.
func (p *poller) enterGroup() {
	shards := max(p.State.Load().Settings.Shards, 1)
	if shards == p.groupedFor {
		return
	}
	p.groupedFor = shards
	group, weight := p.Group, float64(p.Weight)/float64(shards)
	if group == nil && shards > 1 {
		group, weight = p.ShardGroup, 1
	}
	if p.grouped && p.share.In(group) {
		p.share.SetWeight(weight)
		return
	}
	if p.grouped {
		p.share.Leave()
		p.grouped, p.share, p.awaitsShare = false, nil, false
	}
	if group == nil {
		return
	}
	if !p.share.In(group) {
		p.share = group.Member(weight)
	}
	toPoller, free := p.queue.toPoller, shareFree{p.incarnation}
	p.grouped = true
	p.share.SetWeight(weight)
	p.share.Enter(p.usedShare(), func() { toPoller(free) })
}

// takeShare takes up to n places of the group for a claim; all without a group.
func (p *poller) takeShare(n int) int {
	if p.share == nil {
		return n
	}
	n = p.share.Take(n)
	p.awaitsShare, p.triedShare = n == 0, true
	return n
}

// returnShare gives back the places of leases that are no longer held.
func (p *poller) returnShare() {
	if p.share == nil {
		return
	}
	p.triedShare = false
	p.share.Return(p.usedShare())
}

// usedShare returns how many places the topic uses: those of its leases, and of its claims
// in flight.
func (p *poller) usedShare() int {
	used := p.reserved
	for _, s := range p.streams {
		used += len(s.held)
	}
	return used
}

// refundShare notes that n places of a claim found no timer.
func (p *poller) refundShare(n int) {
	if p.share != nil && n > 0 {
		p.share.Refund(n)
	}
}

// competeForShare tells the group whether the topic has a use for more places.
func (p *poller) competeForShare() {
	if p.share == nil {
		return
	}
	p.awaitsShare = p.awaitsShare && p.triedShare
	able := p.free() > 0 && !p.unavailable && p.mayClaim(p.streams[0]) && p.pace.heldUntil.IsZero() && (p.pace.fallback == 0 || p.pace.helping)
	p.share.Compete(p.awaitsShare || able && p.pace.backlog)
}
