package metrics

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/wakebell/wakebell/wakebelltype"
)

// pollerCount is a counter of pollers. Its series begins with its first event, unless it is
// reported always: an alert on its increase would miss the first value.
type pollerCount struct {
	of      func(*observers) metric.Int64Observable
	value   func(c *wakebelltype.Counters) int64
	always  bool
	outcome attribute.KeyValue // zero: none
}

func ended(how string, value func(c *wakebelltype.Counters) int64) pollerCount {
	return pollerCount{func(o *observers) metric.Int64Observable { return o.settled }, value, false, outcome.String(how)}
}

func counted(always bool, of func(*observers) metric.Int64Observable, value func(c *wakebelltype.Counters) int64) pollerCount {
	return pollerCount{of: of, value: value, always: always}
}

var pollerCounts = [...]pollerCount{
	ended("ack", func(c *wakebelltype.Counters) int64 { return c.Acked - c.RejectedAcks }),
	ended("retry", func(c *wakebelltype.Counters) int64 { return c.Retried }),
	ended("snoozed", func(c *wakebelltype.Counters) int64 { return c.Snoozed }),
	ended("expired", func(c *wakebelltype.Counters) int64 { return c.Expired }),
	ended("dead", func(c *wakebelltype.Counters) int64 {
		return c.DeadLettered - c.Rejected - c.PayloadsMissing - c.ExpiredDead
	}),
	ended("rejected", func(c *wakebelltype.Counters) int64 { return c.Rejected }),
	ended("discarded", func(c *wakebelltype.Counters) int64 { return c.Discarded }),
	ended("released", func(c *wakebelltype.Counters) int64 { return c.Released }),
	ended("crashed", func(c *wakebelltype.Counters) int64 { return c.Crashed }),
	ended("superseded", func(c *wakebelltype.Counters) int64 { return c.Superseded }),
	ended("cancelled", func(c *wakebelltype.Counters) int64 { return c.Cancelled }),
	ended("lease_lost", func(c *wakebelltype.Counters) int64 { return c.Lost }),
	ended("hung", func(c *wakebelltype.Counters) int64 { return c.Hung }),

	counted(true, func(o *observers) metric.Int64Observable { return o.lost }, func(c *wakebelltype.Counters) int64 { return c.Lost }),
	counted(true, func(o *observers) metric.Int64Observable { return o.dead }, func(c *wakebelltype.Counters) int64 { return c.DeadLettered }),
	counted(false, func(o *observers) metric.Int64Observable { return o.heartbeats }, func(c *wakebelltype.Counters) int64 { return c.HeartbeatsFailed }),
	counted(false, func(o *observers) metric.Int64Observable { return o.prefetched }, func(c *wakebelltype.Counters) int64 { return c.PrefetchReturned }),
	counted(false, func(o *observers) metric.Int64Observable { return o.throttled }, func(c *wakebelltype.Counters) int64 { return c.Throttled }),
	counted(false, func(o *observers) metric.Int64Observable { return o.keyThrottled }, func(c *wakebelltype.Counters) int64 { return c.KeyThrottled }),
	counted(false, func(o *observers) metric.Int64Observable { return o.fallback }, func(c *wakebelltype.Counters) int64 { return c.FallbackDelivered }),
	counted(false, func(o *observers) metric.Int64Observable { return o.help }, func(c *wakebelltype.Counters) int64 { return c.HelpRequests }),
	counted(false, func(o *observers) metric.Int64Observable { return o.handlers }, func(c *wakebelltype.Counters) int64 { return c.HandlerRestarts }),
	counted(false, func(o *observers) metric.Int64Observable { return o.pollers }, func(c *wakebelltype.Counters) int64 { return c.Restarts }),
	counted(false, func(o *observers) metric.Int64Observable { return o.missing }, func(c *wakebelltype.Counters) int64 { return c.PayloadsMissing }),
	counted(false, func(o *observers) metric.Int64Observable { return o.orphans }, func(c *wakebelltype.Counters) int64 { return c.OrphansRemoved }),
	counted(false, func(o *observers) metric.Int64Observable { return o.opened }, func(c *wakebelltype.Counters) int64 { return c.BreakerOpened }),
}

// counts are the values of pollerCounts.
type counts [len(pollerCounts)]int64

func countsOf(c *wakebelltype.Counters) (all counts) {
	for i := range pollerCounts {
		all[i] = pollerCounts[i].value(c)
	}
	return all
}

func (c *counts) add(d counts) {
	for i := range c {
		c[i] += d[i]
	}
}

// since returns what was counted after d. A counter that began again counts nothing.
func (c counts) since(d counts) counts {
	for i := range c {
		c[i] = max(0, c[i]-d[i])
	}
	return c
}

// share is what was reported of a topic under its own name, and as a part of Other. Which
// of them grows may change from one collection to the next, and none ever decreases.
type share struct{ own, other counts }

// polled is what the pollers of a topic report, the sum of its shards.
type polled struct {
	counts                                                            counts
	delivered, repeated, held, kept, breaker, concurrency, clockSteps int64
	roles                                                             map[string]int64
}

// pollersOf returns what the pollers of a node report, by the key of the topic.
func (m *Metrics) pollersOf(n *Node) map[string]*polled {
	all := map[string]*polled{}
	for name, c := range n.Counters() {
		key := m.key(name, n.IsQueue != nil && n.IsQueue(name))
		p := all[key]
		if p == nil {
			p = &polled{}
			all[key] = p
		}
		p.counts.add(countsOf(&c))
		p.delivered, p.repeated, p.held, p.kept = p.delivered+c.Delivered, p.repeated+c.Repeated, p.held+c.Held, p.kept+c.OrphansHeld
		p.breaker, p.concurrency, p.clockSteps = p.breaker+c.BreakerOpen, p.concurrency+c.Concurrency, p.clockSteps+c.ClockSteps
		if c.Role != "" {
			if p.roles == nil {
				p.roles = map[string]int64{}
			}
			p.roles[c.Role]++
		}
	}
	return all
}

func (c *collecting) pollers(all map[string]*polled) {
	o, sum, roles := c.o, polled{}, map[string]int64{}
	for key, p := range all {
		labels, _ := c.names.of(key)
		sum.delivered, sum.repeated = sum.delivered+p.delivered, sum.repeated+p.repeated
		sum.held, sum.clockSteps = sum.held+p.held, sum.clockSteps+p.clockSteps
		c.some(o.kept, labels, p.kept)
		c.some(o.breaker, labels, p.breaker)
		c.some(o.concurrency, labels, p.concurrency)
		for role, n := range p.roles {
			roles[role] += n
		}
	}
	c.shares(all)
	for role, n := range roles {
		c.to.ObserveInt64(o.role, n, newOption(nodeRole.String(role)).observe...)
	}
	if len(all) > 0 { // a beat handles nothing
		c.to.ObserveInt64(o.held, sum.held)
		for how, n := range map[string]int64{"first": sum.delivered - sum.repeated, "repeated": sum.repeated} {
			c.to.ObserveInt64(o.consumed, n, newOption(ours, operation.String("process"), attempt.String(how)).observe...)
		}
	}
	c.to.ObserveInt64(o.steps, sum.clockSteps)
}

// shares reports the counters of pollers.
func (c *collecting) shares(all map[string]*polled) {
	m, others, folded := c.m, counts{}, false
	m.sharesMu.Lock()
	defer m.sharesMu.Unlock()
	for key, p := range all {
		s := m.shares[key]
		labels, own := c.names.of(key)
		if own {
			s.own = p.counts.since(s.other)
			c.counts(labels, s.own)
		} else {
			s.other, folded = p.counts.since(s.own), true
		}
		m.shares[key] = s
	}
	for _, s := range m.shares {
		others.add(s.other)
	}
	if folded || others != (counts{}) {
		c.counts(c.names.other, others)
	}
}

func (c *collecting) counts(of *labels, all counts) {
	for i, n := range all {
		if count := &pollerCounts[i]; count.always {
			c.add(count.of(c.o), of, n)
		} else {
			c.some(count.of(c.o), of, n, count.outcome)
		}
	}
}

// handlers reports what the handlers of this node do.
func (c *collecting) handlers(all []handling) {
	for _, h := range all {
		labels, _ := c.names.of(h.key)
		if h.late >= 0 {
			c.most(c.o.late99, labels, h.late)
		}
		if h.took >= 0 {
			c.most(c.o.took99, labels, h.took)
		}
		if h.oldest > 0 {
			c.most(c.o.oldestRun, labels, h.oldest.Seconds())
		}
	}
}
