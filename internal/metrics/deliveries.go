package metrics

import (
	"context"
	"slices"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// ours is the value of messaging.system.
var ours = system.String("wakebell")

type deliveryInstruments struct {
	duration, lateness, batch metric.Float64Histogram
}

func newDeliveryInstruments(m metric.Meter) deliveryInstruments {
	return deliveryInstruments{duration: processDuration.histogram(m), lateness: lateness.histogram(m), batch: batchSize.histogram(m)}
}

// unrelated is the context of what is recorded for each delivery. That of a handler
// would be asked for a span, and it costs allocations before it answers.
//
//nolint:forbidigo // nothing that is recorded with it waits
var unrelated = context.Background()

// Topic measures what clients do with a topic or a queue.
type Topic struct {
	labels []attribute.KeyValue // which one it is

	// Attribute sets are made when they are first used.
	plain atomic.Pointer[option]
	sent  [len(operations)][len(classes)]atomic.Pointer[option]
}

// topic returns what a topic is measured with, by its full name or that of one of its
// shards, or a queue.
func (m *Metrics) topic(name string, queue bool) *Topic { return m.topics.of(m.key(name, queue)) }

// and returns the labels of the topic and others.
func (t *Topic) and(others ...attribute.KeyValue) []attribute.KeyValue {
	return slices.Concat(t.labels, others)
}

// prepared returns the option of a slot, which attributes makes once.
func prepared(slot *atomic.Pointer[option], attributes func() []attribute.KeyValue) *option {
	if o := slot.Load(); o != nil {
		return o
	}
	o := newOption(attributes()...)
	slot.Store(o)
	return o
}

func (t *Topic) only() *option {
	return prepared(&t.plain, func() []attribute.KeyValue { return t.labels })
}

// Result is how a handler ended.
type Result uint8

// The results of handlers.
const (
	Handled Result = iota
	Failed
	Rejected
	Undeliverable
	Crashed
	Released
)

// results are the values of error.type for handlers.
var results = [...]string{Handled: "", Failed: "failed", Rejected: "rejected", Undeliverable: "undeliverable", Crashed: "crashed", Released: "released"}

// processed are the options of the results.
var processed = func() (all [len(results)]*option) {
	for i, class := range results {
		all[i] = newOption(withError(class, ours, operation.String("process"))...)
	}
	return all
}()

// withError appends the class of an error, unless there is none.
func withError(class string, attributes ...attribute.KeyValue) []attribute.KeyValue {
	if class != "" {
		attributes = append(attributes, errorType.String(class))
	}
	return attributes
}
