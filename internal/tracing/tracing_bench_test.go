package tracing_test

import (
	"context"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/wakebell/wakebell/internal/tracing"
	"github.com/wakebell/wakebell/wakebelltype"
)

// providers are what BenchmarkDelivery and BenchmarkSend compare.
func providers() map[string]trace.TracerProvider {
	sampled := func(ratio float64) trace.TracerProvider {
		return sdk.NewTracerProvider(sdk.WithBatcher(drops{}), sdk.WithSampler(sdk.TraceIDRatioBased(ratio)))
	}
	return map[string]trace.TracerProvider{"unset": nil, "noop": noop.NewTracerProvider(), "1%": sampled(0.01), "all": sampled(1)}
}

// drops is an exporter that drops its spans.
type drops struct{}

func (drops) ExportSpans(context.Context, []sdk.ReadOnlySpan) error { return nil }
func (drops) Shutdown(context.Context) error                        { return nil }

// headers have a span that is not sampled, as most are.
var headers = []wakebelltype.Header{{Key: "traceparent", Value: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"}}

// BenchmarkDelivery makes the span of a delivery.
func BenchmarkDelivery(b *testing.B) {
	for name, provider := range providers() {
		b.Run(name, func(b *testing.B) {
			tracer := tracing.New(tracing.Config{Provider: provider}).Consumer()
			b.ReportAllocs()
			for b.Loop() {
				if !tracer.On() {
					continue
				}
				_, span := tracer.Deliver(b.Context(), &tracing.Delivered{
					Topic: "invoices", ID: "0af76519-16cd-43dd-8448-eb211c80319c", CorrelationID: "order-7", Attempt: 1,
					Lateness: time.Millisecond, Size: 100, Headers: headers,
				})
				span.End(tracing.Ack, nil)
			}
		})
	}
}

// BenchmarkSend makes the span of a schedule call and writes the headers.
func BenchmarkSend(b *testing.B) {
	for name, provider := range providers() {
		b.Run(name, func(b *testing.B) {
			tracer := tracing.New(tracing.Config{Provider: provider})
			b.ReportAllocs()
			for b.Loop() {
				if !tracer.Carries(b.Context()) {
					continue
				}
				out := []*wakebelltype.Outgoing{{Kind: wakebelltype.OutgoingTimer, Topic: "invoices", ID: "a"}}
				ctx, span := tracer.Send(b.Context(), "schedule", out)
				tracer.Stamp(ctx, out, func(*wakebelltype.Outgoing) bool { return true })
				span.End(nil)
			}
		})
	}
}
