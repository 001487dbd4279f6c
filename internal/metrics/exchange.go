package metrics

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

type exchangeInstruments struct {
	duration metric.Float64Histogram
	size     metric.Int64Histogram
	failures metric.Int64Counter
}

func newExchangeInstruments(m metric.Meter) exchangeInstruments {
	return exchangeInstruments{
		duration: exchangeDuration.histogram(m), size: exchangeSize.sizes(m), failures: scriptErrors.counter(m),
	}
}

// class is the class of an error.
type class uint8

const (
	classNone class = iota
	classUnavailable
	classMemoryFull
	classDenied
	classWrongType
	classUnsupported
	classStale
	classInvalid
	classFull
	classTooFewReplicas
	classTimeout
	classCancelled
	classOther
)

var classes = [...]string{
	classNone: "", classUnavailable: "unavailable", classMemoryFull: "memory_full", classDenied: "denied",
	classWrongType: "wrong_type", classUnsupported: "unsupported", classStale: "stale", classInvalid: "invalid",
	classFull: "queue_full", classTooFewReplicas: "too_few_replicas", classTimeout: "timeout",
	classCancelled: "cancelled", classOther: "other",
}

// classified are the errors of stores, those that wrap others first.
var classified = []struct {
	err   error
	class class
}{
	{exchange.ErrUnavailable, classUnavailable},
	{wakebelltype.ErrMemoryFull, classMemoryFull},
	{wakebelltype.ErrDenied, classDenied},
	{wakebelltype.ErrWrongType, classWrongType},
	{wakebelltype.ErrUnsupported, classUnsupported},
	{exchange.ErrStale, classStale},
	{wakebelltype.ErrInvalid, classInvalid},
	{wakebelltype.ErrQueueFull, classFull},
	{wakebelltype.ErrTooFewReplicas, classTooFewReplicas},
	{context.DeadlineExceeded, classTimeout},
	{context.Canceled, classCancelled},
}

// classOf classifies an error of a store. What the store has classified goes before
// the error of a context, which may be its cause.
func classOf(err error) class {
	if err == nil {
		return classNone
	}
	for _, known := range classified {
		if errors.Is(err, known.err) {
			return known.class
		}
	}
	return classOther
}

// ClassOf returns the class of an error of a store, as the label error.type has it; empty
// for nil.
func ClassOf(err error) string { return classes[classOf(err)] }

// begin reports the classes of errors that alerts ask for as 0, so that the first error
// counts as an increase.
func (e exchangeInstruments) begin() {
	for _, c := range []class{classUnavailable, classMemoryFull, classDenied, classWrongType} {
		e.failures.Add(unrelated, 0, metric.WithAttributeSet(attribute.NewSet(errorType.String(classes[c]))))
	}
}

// ScriptFailed counts a script that failed.
func (m *Metrics) ScriptFailed(ctx context.Context, err error) {
	if m != nil {
		count(ctx, m.exchange.failures, 1, errorType.String(classes[classOf(err)]))
	}
}

// The parts of an exchange.
const (
	partSettled = iota
	partExtended
	partClaimed
)

var partNames = [...]string{"settled", "extended", "claimed"}

// Source is a source of leases, as a poller consumes it.
type Source interface {
	Name() string
	Shard() string
	Exchange(ctx context.Context, req *exchange.Request) (*exchange.Reply, error)
	RemoveOrphans(ctx context.Context) (exchange.Swept, error)
}

// peeker is a Source that can be peeked at.
type peeker interface {
	Source
	Peek(ctx context.Context) (exchange.PeekReply, error)
	Watch(ctx context.Context, answered exchange.Answered) (stop func() (next time.Time))
}

// Source returns a source whose exchanges are measured.
func (m *Metrics) Source(s Source) Source {
	if m == nil {
		return s
	}
	measured := measuredSource{s, m}
	if p, ok := s.(peeker); ok {
		return measuredPeeker{measured, p}
	}
	return measured
}

type measuredSource struct {
	Source
	m *Metrics
}

// Wrapped returns the source that is measured, which may be able to do more.
func (s measuredSource) Wrapped() any { return s.Source }

type measuredPeeker struct {
	measuredSource
	peeker peeker
}

// Peek passes a peek on. Peeks are not measured: they are cheap, and many.
func (s measuredPeeker) Peek(ctx context.Context) (exchange.PeekReply, error) {
	return s.peeker.Peek(ctx)
}

// Watch passes a watch on, as Peek does.
func (s measuredPeeker) Watch(ctx context.Context, answered exchange.Answered) (stop func() (next time.Time)) {
	return s.peeker.Watch(ctx, answered)
}

// Exchange measures an exchange.
func (s measuredSource) Exchange(ctx context.Context, r *exchange.Request) (*exchange.Reply, error) {
	to := &s.m.exchange
	if !to.duration.Enabled(ctx) {
		return s.Source.Exchange(ctx, r)
	}
	began := time.Now()
	reply, err := s.Source.Exchange(ctx, r)
	to.duration.Record(ctx, time.Since(began).Seconds(), exchanged[classOf(err)].record...)
	if reply != nil {
		to.size.Record(ctx, int64(len(r.Settle)), partOptions[partSettled].record...)
		to.size.Record(ctx, int64(len(r.Extend)), partOptions[partExtended].record...)
		to.size.Record(ctx, int64(len(reply.Leases)), partOptions[partClaimed].record...)
	}
	return reply, err
}

// exchanged are the options of the results of exchanges, and partOptions those of their parts.
var (
	exchanged = func() (all [len(classes)]*option) {
		for i, class := range classes {
			all[i] = newOption(result.String(cmp.Or(class, "ok")))
		}
		return all
	}()
	partOptions = func() (all [len(partNames)]*option) {
		for i, name := range partNames {
			all[i] = newOption(part.String(name))
		}
		return all
	}()
)
