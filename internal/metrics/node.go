package metrics

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/wakebell/wakebell/wakebelltype"
)

// Node is what a System reports when the metrics are collected. The functions are
// called from several goroutines.
type Node struct {
	Version  string                                  // of Wakebell
	Counters func() map[string]wakebelltype.Counters // of the pollers, by the full names of their sources
	IsQueue  func(name string) bool                  // whether a source is a queue; nil: none is
	Outages  func() []Outage

	// RecordsFailed are the records that could not be written: entries of the audit, and
	// attempts and counts of topics.
	RecordsFailed func() (audit, topics int64)

	// Backlog reads the backlog of all topics, Queues that of all queues, and Gates the
	// gates that are in use. They should end soon after ctx.
	Backlog func(ctx context.Context) ([]Backlog, error)
	Queues  func(ctx context.Context) ([]Queue, error)
	Gates   func(ctx context.Context) ([]GateState, error)

	// Schedules reads how the recurring schedules are attended; nil: not at all.
	Schedules func(ctx context.Context) (Schedules, error)
}

// Outage is the state of a server of Redis.
type Outage struct {
	Shard string
	Down  bool
	Ended int64 // outages that ended
}

// Observe reports a node when the metrics are collected, until the returned function
// is called. That function waits for readings of Redis to end. If there is an SDK,
// the counters are reported with their last values afterwards: what was counted since
// the last export would be lost otherwise.
func (m *Metrics) Observe(n Node) (end func()) {
	if m == nil {
		return func() {}
	}
	o := newObservers(m.meter)
	//nolint:forbidigo // the readings continue after the collection that began them, until end
	ctx, cancel := context.WithCancel(context.Background())
	read := newReadings(ctx, &n)
	var last atomic.Pointer[Node]
	registered, err := m.meter.RegisterCallback(func(ctx context.Context, to metric.Observer) error {
		if ended := last.Load(); ended != nil {
			m.collect(to, o, ended, nil)
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, waitForReading)
		defer cancel()
		f := read.get(ctx)
		m.collect(to, o, &n, &f)
		return nil
	}, o.all...)
	if err != nil {
		otel.Handle(err)
	}
	return sync.OnceFunc(func() {
		last.Store(n.frozen())
		if registered != nil && !m.delivery.duration.Enabled(ctx) {
			_ = registered.Unregister() // it fails for another SDK's registrations only
		}
		cancel()
		read.wait()
	})
}

// collect reports a node and what was found in Redis; nil: the node has ended, and its
// counters alone are reported.
func (m *Metrics) collect(to metric.Observer, o *observers, n *Node, f *found) {
	pollers, ended := m.pollersOf(n), f == nil
	if ended {
		f = &found{}
	}
	handlers, handled := m.handlings(), slices.Collect(maps.Keys(pollers))
	for _, h := range handlers {
		handled = append(handled, h.key)
	}
	c := newCollecting(m, to, o, choose(m.limit, m.needs(f.topics, f.queues, handled)))
	c.pollers(pollers)
	m.observeOutages(to, o, n.Outages())
	m.observeRecords(to, o, n.RecordsFailed)
	if !ended {
		to.ObserveInt64(o.build, 1, newOption(version.String(n.Version), goVersion.String(runtime.Version())).observe...)
		c.handlers(handlers)
		c.backlog(f)
		c.queues(f.queues)
		observeSchedules(to, o, f)
		m.observeGates(to, o, f.gates)
	}
	c.report()
}

// frozen returns a node that reports the present counters.
func (n Node) frozen() *Node {
	counters, outages := n.Counters(), n.Outages()
	ended := &Node{
		Counters: func() map[string]wakebelltype.Counters { return counters },
		IsQueue:  n.IsQueue,
		Outages:  func() []Outage { return outages },
	}
	if n.RecordsFailed != nil {
		audit, topics := n.RecordsFailed()
		ended.RecordsFailed = func() (int64, int64) { return audit, topics }
	}
	return ended
}

func (m *Metrics) observeRecords(to metric.Observer, o *observers, failed func() (audit, topics int64)) {
	if failed == nil {
		return
	}
	audit, topics := failed()
	to.ObserveInt64(o.records, audit, newOption(recordKind.String("audit")).observe...)
	to.ObserveInt64(o.records, topics, newOption(recordKind.String("topic")).observe...)
}

func (m *Metrics) observeOutages(to metric.Observer, o *observers, outages []Outage) {
	for _, each := range outages {
		of, down := newOption(shard.String(each.Shard)).observe, int64(0)
		if each.Down {
			down = 1
		}
		to.ObserveInt64(o.outage, down, of...)
		to.ObserveInt64(o.reconnects, each.Ended, of...)
	}
}
