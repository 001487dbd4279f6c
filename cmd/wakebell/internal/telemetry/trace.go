package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

// trace starts the exporter of spans. A full queue of spans drops the next ones, so
// that nothing waits for the exporter.
func (t *Telemetry) trace(ctx context.Context) error {
	protocol, on, err := exports("TRACES")
	if err != nil || !on {
		return err
	}
	client := otlptracehttp.NewClient()
	if protocol == "grpc" {
		client = otlptracegrpc.NewClient()
	}
	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return cli.Usagef("OTEL_EXPORTER_OTLP_ENDPOINT: %v", err)
	}
	described, err := describe(ctx)
	if err != nil {
		return err
	}
	provider := trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(described))
	t.TracerProvider = provider
	t.stops = append(t.stops, provider.Shutdown)
	return nil
}
