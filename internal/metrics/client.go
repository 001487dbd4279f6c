package metrics

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

type clientInstruments struct {
	sent              metric.Int64Counter
	duration          metric.Float64Histogram
	redriven, deleted metric.Int64Counter
}

func newClientInstruments(m metric.Meter) clientInstruments {
	return clientInstruments{
		sent: sent.counter(m), duration: operationDuration.histogram(m),
		redriven: deadRedriven.counter(m), deleted: deadDeleted.counter(m),
	}
}

// Operation is a call of a client.
type Operation uint8

// The operations of clients.
const (
	Schedule Operation = iota
	Publish
)

var operations = [...]string{Schedule: "schedule", Publish: "publish"}

// Begin returns when a call of a client began; zero if calls are not measured.
func (m *Metrics) Begin(ctx context.Context) time.Time {
	if m == nil || !m.client.duration.Enabled(ctx) {
		return time.Time{}
	}
	return time.Now()
}

// Sent records a call that stored n timers or messages, or failed. Begin has
// returned when it began.
func (m *Metrics) Sent(ctx context.Context, op Operation, name string, n int, began time.Time, err error) {
	if began.IsZero() {
		return
	}
	t, c := m.topic(name, op == Publish), classOf(err)
	o := prepared(&t.sent[op][c], func() []attribute.KeyValue {
		return withError(classes[c], t.and(ours, operation.String(operations[op]))...)
	})
	m.client.duration.Record(ctx, time.Since(began).Seconds(), called[op][c].record...)
	m.client.sent.Add(ctx, int64(n), o.add...)
}

// called are the options of calls without their topic.
var called = func() (all [len(operations)][len(classes)]*option) {
	for op, name := range operations {
		for c, class := range classes {
			all[op][c] = newOption(withError(class, ours, operation.String(name))...)
		}
	}
	return all
}()

// Redriven counts dead letters that were made timers again.
func (m *Metrics) Redriven(ctx context.Context, name string, n int64) {
	if m != nil && n > 0 {
		m.client.redriven.Add(ctx, n, m.topic(name, false).only().add...)
	}
}

// Deleted counts dead letters that were deleted.
func (m *Metrics) Deleted(ctx context.Context, name string, n int64) {
	if m != nil && n > 0 {
		m.client.deleted.Add(ctx, n, m.topic(name, false).only().add...)
	}
}

type joinInstruments struct{ joins, parts, audits metric.Int64Counter }

func newJoinInstruments(m metric.Meter) joinInstruments {
	return joinInstruments{joins: joins.counter(m), parts: joinParts.counter(m), audits: joinAudits.counter(m)}
}

// The outcomes of joins and of their audits.
const (
	JoinMade      = "made"
	JoinComplete  = "complete"
	JoinTimedOut  = "timed_out"
	JoinCancelled = "cancelled"

	AuditNothing = "nothing"
	AuditEnds    = "ends"
	AuditTimer   = "timer"
)

// MeasuresJoins reports whether joins are counted.
func (m *Metrics) MeasuresJoins(ctx context.Context) bool {
	return m != nil && m.join.joins.Enabled(ctx)
}

// Joined counts what became of a join, by the topic of its timer.
func (m *Metrics) Joined(ctx context.Context, topic, how string) {
	if m != nil {
		count(ctx, m.join.joins, 1, m.topic(topic, false).and(outcome.String(how))...)
	}
}

// PartsEnded counts ends of parts that were noted, by the topic of the timer of their join.
func (m *Metrics) PartsEnded(ctx context.Context, topic, how string, n int) {
	if m != nil && n > 0 {
		count(ctx, m.join.parts, int64(n), m.topic(topic, false).and(outcome.String(how))...)
	}
}

// JoinAudited counts an audit of a join by what it has found.
func (m *Metrics) JoinAudited(ctx context.Context, topic, found string) {
	if m != nil {
		count(ctx, m.join.audits, 1, m.topic(topic, false).and(outcome.String(found))...)
	}
}

type queueInstruments struct{ duplicates metric.Int64Counter }

func newQueueInstruments(m metric.Meter) queueInstruments {
	return queueInstruments{duplicates: queueDuplicates.counter(m)}
}

// Duplicates counts messages that were not published, because their deduplication
// key was used before.
func (m *Metrics) Duplicates(ctx context.Context, name string, n int) {
	if m != nil && n > 0 {
		m.queue.duplicates.Add(ctx, int64(n), m.topic(name, true).only().add...)
	}
}

type scheduleInstruments struct {
	fires, misfires, overlaps metric.Int64Counter
	delay                     metric.Float64Histogram
}

func newScheduleInstruments(m metric.Meter) scheduleInstruments {
	return scheduleInstruments{
		fires: scheduleFires.counter(m), misfires: scheduleMisfires.counter(m),
		overlaps: scheduleOverlaps.counter(m), delay: scheduleDelay.histogram(m),
	}
}

// Fired records a run of a recurring schedule on a topic.
func (m *Metrics) Fired(ctx context.Context, topic string, delay time.Duration) {
	if m != nil {
		m.schedule.fires.Add(ctx, 1, m.topic(topic, false).only().add...)
		m.schedule.delay.Record(ctx, max(delay, 0).Seconds())
	}
}

// Misfired counts runs that no beat fired at their instants.
func (m *Metrics) Misfired(ctx context.Context, topic string, n int) {
	if m != nil && n > 0 {
		m.schedule.misfires.Add(ctx, int64(n), m.topic(topic, false).only().add...)
	}
}

// Overlapped counts a run that did not begin, because the timer of the previous run
// existed.
func (m *Metrics) Overlapped(ctx context.Context, topic, rule string) {
	if m != nil {
		count(ctx, m.schedule.overlaps, 1, m.topic(topic, false).and(overlap.String(rule))...)
	}
}

type reminderInstruments struct{ deliveries, requests metric.Int64Counter }

func newReminderInstruments(m metric.Meter) reminderInstruments {
	return reminderInstruments{deliveries: reminderDeliveries.counter(m), requests: reminderRequests.counter(m)}
}

// Reminded counts a delivery of a reminder by its outcome.
func (m *Metrics) Reminded(ctx context.Context, how string) {
	if m != nil {
		count(ctx, m.reminder.deliveries, 1, outcome.String(how))
	}
}

// ReminderRequested counts a request about a reminder by its result.
func (m *Metrics) ReminderRequested(ctx context.Context, how string) {
	if m != nil {
		count(ctx, m.reminder.requests, 1, result.String(how))
	}
}
