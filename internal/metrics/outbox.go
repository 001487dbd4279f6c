package metrics

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Outbox is what a relay reports.
type Outbox struct {
	Measured        bool // Waiting, Failed and Lag are known
	Waiting, Failed int64
	Lag             time.Duration

	Relayed, Deferred, Rejected int64 // since the start of the relay
}

// ObserveOutbox reports what read returns, labelled with the name of a table, until end
// is called.
func (m *Metrics) ObserveOutbox(table string, read func() Outbox) (end func()) {
	if m == nil {
		return func() {}
	}
	lag := outboxLag.observableSeconds(m.meter)
	rows, failed := outboxWaiting.observableGauge(m.meter), outboxFailed.observableGauge(m.meter)
	relayed := outboxRelayed.observableCounter(m.meter)
	label := metric.WithAttributeSet(attribute.NewSet(outboxTable.String(table)))
	of := func(result string) metric.ObserveOption {
		return metric.WithAttributeSet(attribute.NewSet(outboxTable.String(table), outcome.String(result)))
	}
	ok, deferred, rejected := of("relayed"), of("deferred"), of("rejected")
	registered, err := m.meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		now := read()
		if now.Measured {
			to.ObserveFloat64(lag, now.Lag.Seconds(), label)
			to.ObserveInt64(rows, now.Waiting, label)
			to.ObserveInt64(failed, now.Failed, label)
		}
		to.ObserveInt64(relayed, now.Relayed, ok)
		to.ObserveInt64(relayed, now.Deferred, deferred)
		to.ObserveInt64(relayed, now.Rejected, rejected)
		return nil
	}, lag, rows, failed, relayed)
	if err != nil {
		otel.Handle(err)
		return func() {}
	}
	return func() {
		if err := registered.Unregister(); err != nil {
			otel.Handle(err)
		}
	}
}
