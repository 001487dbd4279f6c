package metrics

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/wakebell/wakebell/internal/sharding"
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

// Topic measures a topic or a queue. A nil Topic measures nothing.
type Topic struct {
	m      *Metrics
	labels []attribute.KeyValue // which one it is

	// Attribute sets are made when they are first used.
	plain     atomic.Pointer[option]
	processed [len(results)]atomic.Pointer[option]
	exchanged [len(classes)]atomic.Pointer[option]
	parts     [len(partNames)]atomic.Pointer[option]
	sent      [len(operations)][len(classes)]atomic.Pointer[option]
}

// Topic returns what a topic is measured with, by its full name or that of one of its
// shards.
func (m *Metrics) Topic(name string) *Topic {
	if m == nil {
		return nil
	}
	if !m.byShard {
		name = sharding.Topic(name)
	}
	return m.topics.of(name)
}

// Queue returns what a queue is measured with. Its name may look like that of a shard.
func (m *Metrics) Queue(name string) *Topic {
	if m == nil {
		return nil
	}
	if sharding.Reserved(name) {
		name = queueMark + name
	}
	return m.topics.of(name)
}

// queueMark precedes the names of queues that look like those of shards.
const queueMark = "\x00"

// destinationOf returns the labels of a name of the folder.
func destinationOf(name string) []attribute.KeyValue {
	if queue, marked := strings.CutPrefix(name, queueMark); marked {
		return []attribute.KeyValue{destination.String(queue)}
	}
	topic, n, k := sharding.Split(name)
	if n == 1 {
		return []attribute.KeyValue{destination.String(name)}
	}
	return []attribute.KeyValue{destination.String(topic), partition.String(strconv.Itoa(k))}
}

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

// Measures reports whether deliveries are measured at present.
func (t *Topic) Measures() bool {
	return t != nil && t.m.delivery.duration.Enabled(unrelated)
}

// Began records how late a handler begins.
func (t *Topic) Began(late time.Duration) {
	t.m.delivery.lateness.Record(unrelated, max(late, 0).Seconds(), t.only().record...)
}

// Batch records the size of a batch.
func (t *Topic) Batch(size int) {
	t.m.delivery.batch.Record(unrelated, float64(size), t.only().record...)
}

// Ended records how long a handler took.
func (t *Topic) Ended(r Result, took time.Duration) {
	o := prepared(&t.processed[r], func() []attribute.KeyValue {
		return withError(results[r], t.and(ours, operation.String("process"))...)
	})
	t.m.delivery.duration.Record(unrelated, took.Seconds(), o.record...)
}

// withError appends the class of an error, unless there is none.
func withError(class string, attributes ...attribute.KeyValue) []attribute.KeyValue {
	if class != "" {
		attributes = append(attributes, errorType.String(class))
	}
	return attributes
}
