// Package metrics measures a process with the OpenTelemetry metric API. It has the
// table of all instruments, from which docs/metrics.md is made, and a method for
// each thing that is measured.
//
// A *Metrics may be nil, which measures nothing. Without an SDK the instruments are
// disabled, and the methods on the hot path return before they read the clock.
// Pollers keep counters of their own, which a [Node] reads when the metrics are
// collected, so that a delivery costs two histogram records at most.
package metrics

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// Scope is the name of the instrumentation scope of all metrics.
const Scope = "github.com/wakebell/wakebell"

// DefaultTopics is the default of Options.Topics.
const DefaultTopics = 1000

// Options configures a Metrics.
type Options struct {
	// Provider makes the instruments; nil means the global provider.
	Provider metric.MeterProvider
	// Topics is how many topics, queues and gates each have a label of their own;
	// 0 means DefaultTopics. All others share the label Other. What a node reports has
	// the worst topics and queues by name, other instruments those that came first.
	Topics int
	// Shards measures each shard of a topic by itself. Otherwise a topic has the sums of
	// its shards.
	Shards bool
}

// Metrics has the instruments of a process. It is safe for concurrent use.
type Metrics struct {
	meter   metric.Meter
	byShard bool

	limit int

	topics folder[*Topic] // and queues
	gates  folder[*Gate]

	handlersMu sync.Mutex
	handlers   map[string]*Handler // by the keys of topics

	sharesMu sync.Mutex
	shares   map[string]share // by the keys of topics

	delivery deliveryInstruments
	exchange exchangeInstruments
	client   clientInstruments
	join     joinInstruments
	queue    queueInstruments
	schedule scheduleInstruments
	gate     gateInstruments
	reminder reminderInstruments
	remote   remoteInstruments

	held heldTurns
}

// New returns the Metrics of a provider; nil for a provider that measures nothing.
func New(o Options) *Metrics {
	if o.Provider == nil {
		o.Provider = otel.GetMeterProvider()
	}
	if _, off := o.Provider.(noop.MeterProvider); off {
		return nil
	}
	if o.Topics == 0 {
		o.Topics = DefaultTopics
	}
	m := &Metrics{
		meter: o.Provider.Meter(Scope), byShard: o.Shards, limit: o.Topics,
		handlers: map[string]*Handler{}, shares: map[string]share{},
	}
	m.topics = newFolder(o.Topics, func(label string) *Topic { return &Topic{labels: destinationOf(label)} })
	m.gates = newFolder(o.Topics, func(label string) *Gate { return newGate(m, label) })
	m.delivery = newDeliveryInstruments(m.meter)
	m.exchange = newExchangeInstruments(m.meter)
	m.exchange.begin()
	m.client = newClientInstruments(m.meter)
	m.join = newJoinInstruments(m.meter)
	m.queue = newQueueInstruments(m.meter)
	m.schedule = newScheduleInstruments(m.meter)
	m.gate = newGateInstruments(m.meter)
	m.reminder = newReminderInstruments(m.meter)
	m.remote = newRemoteInstruments(m.meter)
	return m
}

// option is an attribute set, prepared for both kinds of instruments.
type option struct {
	record  []metric.RecordOption
	add     []metric.AddOption
	observe []metric.ObserveOption
}

func newOption(attributes ...attribute.KeyValue) *option {
	set := metric.WithAttributeSet(attribute.NewSet(attributes...))
	return &option{
		record: []metric.RecordOption{set}, add: []metric.AddOption{set}, observe: []metric.ObserveOption{set},
	}
}

// handled passes an error of the API on. The API returns an instrument with every
// error, so that measuring continues without the one that failed.
func handled[T any](instrument T, err error) T {
	if err != nil {
		otel.Handle(err)
	}
	return instrument
}

func (i Instrument) counter(m metric.Meter) metric.Int64Counter {
	return handled(m.Int64Counter(i.Name, metric.WithUnit(i.Unit), metric.WithDescription(i.Description)))
}

func (i Instrument) upDown(m metric.Meter) metric.Int64UpDownCounter {
	return handled(m.Int64UpDownCounter(i.Name, metric.WithUnit(i.Unit), metric.WithDescription(i.Description)))
}

func (i Instrument) histogram(m metric.Meter) metric.Float64Histogram {
	return handled(m.Float64Histogram(i.Name, metric.WithUnit(i.Unit), metric.WithDescription(i.Description),
		metric.WithExplicitBucketBoundaries(i.Buckets...)))
}

func (i Instrument) sizes(m metric.Meter) metric.Int64Histogram {
	return handled(m.Int64Histogram(i.Name, metric.WithUnit(i.Unit), metric.WithDescription(i.Description),
		metric.WithExplicitBucketBoundaries(i.Buckets...)))
}

func (i Instrument) observableCounter(m metric.Meter) metric.Int64ObservableCounter {
	return handled(m.Int64ObservableCounter(i.Name, metric.WithUnit(i.Unit), metric.WithDescription(i.Description)))
}

func (i Instrument) observableGauge(m metric.Meter) metric.Int64ObservableGauge {
	return handled(m.Int64ObservableGauge(i.Name, metric.WithUnit(i.Unit), metric.WithDescription(i.Description)))
}

func (i Instrument) observableSeconds(m metric.Meter) metric.Float64ObservableGauge {
	return handled(m.Float64ObservableGauge(i.Name, metric.WithUnit(i.Unit), metric.WithDescription(i.Description)))
}

// count adds n to a counter with attributes that are not prepared.
func count(ctx context.Context, c metric.Int64Counter, n int64, attributes ...attribute.KeyValue) {
	if n != 0 && c.Enabled(ctx) {
		c.Add(ctx, n, metric.WithAttributeSet(attribute.NewSet(attributes...)))
	}
}
