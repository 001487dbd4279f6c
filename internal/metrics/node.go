package metrics

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/wakebell/wakebell/wakebelltype"
)

// Node is what a System reports when the metrics are collected. The functions are
// called from several goroutines.
type Node struct {
	Counters func() map[string]wakebelltype.Counters // of the pollers, by the full names of their sources
	IsQueue  func(name string) bool                  // whether a source is a queue; nil: none is
	Outages  func() []Outage

	// RecordsFailed are the records that could not be written: entries of the audit, and
	// attempts and counts of topics.
	RecordsFailed func() (audit, topics int64)

	// Backlog reads the backlog of all topics, and Queues the length of the node's
	// queues. They should end soon after ctx.
	Backlog func(ctx context.Context) ([]Backlog, error)
	Queues  func(ctx context.Context) ([]Queue, error)

	// Schedules reads how the recurring schedules are attended; nil: not at all.
	Schedules func(ctx context.Context) (Schedules, error)
}

// Outage is the state of a server of Redis.
type Outage struct {
	Shard string
	Down  bool
	Ended int64 // outages that ended
}

// observers are the instruments that a Node reports.
type observers struct {
	consumed, settled, lost, heartbeats, prefetched, throttled, keyThrottled, fallback, help,
	opened, handlers, pollers, dead, missing, orphans, reconnects, steps, records metric.Int64ObservableCounter
	breaker, concurrency, role, held, kept, outage, due, pending, deadStored, nodes, parked, paused, unreadable, forecast,
	depth, inFlight, queueDead, schedules, beats metric.Int64ObservableGauge
	oldest, age, gateHeld, overdue metric.Float64ObservableGauge
}

func newObservers(m metric.Meter) *observers {
	return &observers{
		consumed: consumed.observableCounter(m), settled: settled.observableCounter(m),
		lost: leasesLost.observableCounter(m), heartbeats: heartbeats.observableCounter(m),
		prefetched: prefetched.observableCounter(m), throttled: throttled.observableCounter(m), keyThrottled: keyThrottled.observableCounter(m),
		fallback: byFallbacks.observableCounter(m), help: helpRequests.observableCounter(m),
		handlers: handlerRestarts.observableCounter(m),
		pollers:  pollerRestarts.observableCounter(m), dead: deadAdded.observableCounter(m), missing: deadMissing.observableCounter(m),
		orphans: orphansRemoved.observableCounter(m), kept: orphansHeld.observableGauge(m),
		reconnects: reconnects.observableCounter(m), steps: clockSteps.observableCounter(m),
		records: recordsFailed.observableCounter(m),
		breaker: breakerOpen.observableGauge(m), opened: breakerOpened.observableCounter(m),
		concurrency: concurrency.observableGauge(m), role: divisionRole.observableGauge(m), held: leasesHeld.observableGauge(m), outage: outage.observableGauge(m),
		due: backlogDue.observableGauge(m), pending: backlogPending.observableGauge(m),
		deadStored: backlogDead.observableGauge(m), nodes: backlogNodes.observableGauge(m), forecast: forecastDue.observableGauge(m),
		parked: backlogParked.observableGauge(m), paused: topicPaused.observableGauge(m), unreadable: topicFaults.observableGauge(m),
		depth: queueDepth.observableGauge(m), inFlight: queueInFlight.observableGauge(m),
		queueDead: queueDead.observableGauge(m), oldest: backlogOldest.observableSeconds(m),
		age: backlogAge.observableSeconds(m), gateHeld: gateHeldAge.observableSeconds(m),
		schedules: scheduleCount.observableGauge(m), beats: scheduleBeats.observableGauge(m), overdue: scheduleOverdue.observableSeconds(m),
	}
}

func (o *observers) all() []metric.Observable {
	return []metric.Observable{
		o.breaker, o.opened, o.concurrency, o.role,
		o.consumed, o.settled, o.lost, o.heartbeats, o.prefetched, o.throttled, o.keyThrottled, o.fallback, o.help, o.handlers, o.pollers, o.dead, o.missing, o.orphans, o.kept, o.reconnects, o.steps, o.records,
		o.held, o.outage, o.due, o.pending, o.deadStored, o.nodes, o.parked, o.paused, o.unreadable, o.forecast, o.depth, o.inFlight, o.queueDead,
		o.oldest, o.age, o.gateHeld, o.schedules, o.beats, o.overdue,
	}
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
	topics, queues := newReading(ctx, n.Backlog, lifetimeOf), newReading(ctx, n.Queues, func([]Queue) time.Duration { return fresh })
	schedules := newReading(ctx, one(n.Schedules), func([]Schedules) time.Duration { return freshSchedules })
	var last atomic.Pointer[Node]
	registered, err := m.meter.RegisterCallback(func(ctx context.Context, to metric.Observer) error {
		if ended := last.Load(); ended != nil {
			m.observePollers(to, o, ended)
			m.observeOutages(to, o, ended.Outages())
			m.observeRecords(to, o, ended.RecordsFailed)
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, waitForReading)
		defer cancel()
		topics.begin() // all at the same time
		queues.begin()
		schedules.begin()
		m.observePollers(to, o, &n)
		m.observeOutages(to, o, n.Outages())
		m.observeRecords(to, o, n.RecordsFailed)
		m.observeBacklog(ctx, to, o, topics)
		m.observeQueues(ctx, to, o, queues)
		observeSchedules(ctx, to, o, schedules)
		m.observeHeld(to, o.gateHeld)
		return nil
	}, o.all()...)
	if err != nil {
		otel.Handle(err)
	}
	return sync.OnceFunc(func() {
		last.Store(n.frozen())
		if registered != nil && !m.delivery.duration.Enabled(ctx) {
			_ = registered.Unregister() // it fails for another SDK's registrations only
		}
		cancel()
		topics.wait()
		queues.wait()
		schedules.wait()
	})
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

// sums adds up what the topics behind one label report.
type sums map[key]int64

type key struct {
	instrument metric.Int64Observable
	topic      *Topic
	label      attribute.KeyValue // a second label; zero: none
}

func (s sums) add(i metric.Int64Observable, t *Topic, n int64) { s[key{instrument: i, topic: t}] += n }

func (s sums) with(i metric.Int64Observable, t *Topic, label attribute.KeyValue, n int64) {
	s[key{i, t, label}] += n
}

func (s sums) report(to metric.Observer) {
	for k, n := range s {
		o := k.topic.only().observe
		switch {
		case k.label.Key == attempt:
			o = newOption(k.topic.and(ours, operation.String("process"), k.label)...).observe
		case k.label.Valid():
			o = newOption(k.topic.and(k.label)...).observe
		}
		to.ObserveInt64(k.instrument, n, o...)
	}
}

func (m *Metrics) observePollers(to metric.Observer, o *observers, n *Node) {
	all, steps := sums{}, int64(0)
	for name, c := range n.Counters() {
		t := m.Topic(name)
		if n.IsQueue != nil && n.IsQueue(name) {
			t = m.Queue(name)
		}
		all.with(o.consumed, t, attempt.String("first"), c.Delivered-c.Repeated)
		all.with(o.consumed, t, attempt.String("repeated"), c.Repeated)
		for how, n := range map[string]int64{
			"ack": c.Acked - c.RejectedAcks, "retry": c.Retried, "dead": c.DeadLettered - c.Rejected - c.PayloadsMissing, "rejected": c.Rejected,
			"discarded": c.Discarded, "released": c.Released, "crashed": c.Crashed, "superseded": c.Superseded,
			"cancelled": c.Cancelled, "lease_lost": c.Lost, "hung": c.Hung,
		} {
			all.with(o.settled, t, outcome.String(how), n)
		}
		for i, n := range map[metric.Int64Observable]int64{
			o.lost: c.Lost, o.heartbeats: c.HeartbeatsFailed, o.prefetched: c.PrefetchReturned, o.throttled: c.Throttled,
			o.keyThrottled: c.KeyThrottled, o.fallback: c.FallbackDelivered, o.help: c.HelpRequests,
			o.handlers: c.HandlerRestarts, o.pollers: c.Restarts, o.dead: c.DeadLettered, o.missing: c.PayloadsMissing, o.orphans: c.OrphansRemoved, o.kept: c.OrphansHeld, o.held: c.Held,
			o.breaker: c.BreakerOpen, o.opened: c.BreakerOpened, o.concurrency: c.Concurrency,
		} {
			all.add(i, t, n)
		}
		for _, role := range []string{"primary", "fallback"} {
			has := int64(0)
			if c.Role == role {
				has = 1
			}
			all.with(o.role, t, nodeRole.String(role), has)
		}
		steps += c.ClockSteps
	}
	all.report(to)
	to.ObserveInt64(o.steps, steps)
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
