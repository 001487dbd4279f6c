package metrics

import (
	"cmp"
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// collecting is one collection. It adds up what the topics behind one label report, of ages
// it takes the worst.
type collecting struct {
	m     *Metrics
	to    metric.Observer
	o     *observers
	names naming

	sums  map[summed]int64
	worst map[worstOf]float64
}

type summed struct {
	instrument metric.Int64Observable
	of         *labels
	label      attribute.KeyValue // a second label; zero: none
}

type worstOf struct {
	instrument metric.Float64Observable
	of         *labels
}

func newCollecting(m *Metrics, to metric.Observer, o *observers, names naming) *collecting {
	return &collecting{m: m, to: to, o: o, names: names, sums: map[summed]int64{}, worst: map[worstOf]float64{}}
}

// add adds n, also if it is 0.
func (c *collecting) add(i metric.Int64Observable, of *labels, n int64) {
	c.sums[summed{instrument: i, of: of}] += n
}

// some adds n unless it is 0: most topics have no such series. A label of the zero value is
// none.
func (c *collecting) some(i metric.Int64Observable, of *labels, n int64, label ...attribute.KeyValue) {
	if n == 0 {
		return
	}
	k := summed{instrument: i, of: of}
	if len(label) > 0 {
		k.label = label[0]
	}
	c.sums[k] += n
}

// most keeps the larger value. Digits behind a millionth would only lengthen a scrape.
func (c *collecting) most(i metric.Float64Observable, of *labels, seconds float64) {
	k := worstOf{i, of}
	c.worst[k] = max(c.worst[k], math.Round(seconds*1e6)/1e6)
}

func (c *collecting) report() {
	for k, n := range c.sums {
		c.to.ObserveInt64(k.instrument, n, k.of.with(k.label)...)
	}
	for k, value := range c.worst {
		c.to.ObserveFloat64(k.instrument, value, k.of.plain...)
	}
}

// backlog reports the topics. Whether topics without a label of their own have nodes, or are
// paused, cannot be said of all of them together: the worst of them have a label.
func (c *collecting) backlog(f *found) {
	if f.topicsAt.IsZero() {
		return
	}
	o, ahead, unreadable, nodes, paused := c.o, [len(Windows)]int64{}, int64(0), map[*labels]int64{}, map[*labels]bool{}
	for _, b := range f.topics {
		of, own := c.names.of(c.m.key(b.Topic, false))
		if b.Unreadable {
			unreadable++
			c.some(o.fault, of, 1, errorType.String(cmp.Or(b.Fault, classes[classOther])))
			continue
		}
		c.add(o.due, of, b.Due)
		c.add(o.pending, of, b.Pending)
		c.add(o.deadStored, of, b.Dead)
		c.some(o.parked, of, b.Parked)
		c.some(o.running, of, b.Running)
		c.some(o.retrying, of, b.Retrying)
		c.most(o.oldest, of, b.OldestDue.Seconds())
		for i, n := range b.Ahead[:min(len(ahead), len(b.Ahead))] {
			ahead[i] += n
		}
		if !own {
			continue
		}
		paused[of] = paused[of] || b.Paused
		if least, seen := nodes[of]; b.Nodes >= 0 && (!seen || b.Nodes < least) { // of shards the worst
			nodes[of] = b.Nodes
		}
	}
	for of, n := range nodes {
		c.add(o.nodes, of, n)
	}
	for of, is := range paused {
		if is {
			c.add(o.paused, of, 1)
		}
	}
	c.to.ObserveInt64(o.unreadable, unreadable)
	for i, w := range Windows {
		c.to.ObserveInt64(o.forecast, ahead[i], metric.WithAttributes(forecastWindow.String(w.Name)))
	}
	c.to.ObserveFloat64(o.age, time.Since(f.topicsAt).Seconds())
}

func (c *collecting) queues(all []Queue) {
	for _, q := range all {
		of, own := c.names.of(c.m.key(q.Name, true))
		c.add(c.o.depth, of, q.Depth)
		c.add(c.o.inFlight, of, q.InFlight)
		c.add(c.o.queueDead, of, q.Dead)
		c.most(c.o.queueOldest, of, q.Oldest.Seconds())
		if own && q.Nodes >= 0 {
			c.add(c.o.queueNodes, of, q.Nodes)
		}
	}
}

func observeSchedules(to metric.Observer, o *observers, f *found) {
	for _, s := range f.schedules {
		to.ObserveInt64(o.schedules, s.Count)
		to.ObserveFloat64(o.overdue, s.Overdue.Seconds())
		if s.Beats >= 0 {
			to.ObserveInt64(o.beats, s.Beats)
		}
	}
}
