package wakebell_test

import (
	"context"
	"fmt"

	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/wakebell/wakebell"
)

// A reader of the SDK collects the metrics of docs/metrics.md. Programs use the
// exporter for Prometheus, or a periodic reader with an OTLP exporter.
func ExampleSystem_MeterProvider() {
	reader := sdk.NewManualReader()
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))
	run(wakebell.Config{MeterProvider: provider}, func(sys *wakebell.System) {
		bill(sys.Client(), "inv-1")
		var collected metricdata.ResourceMetrics
		check(reader.Collect(context.Background(), &collected))
		for _, m := range collected.ScopeMetrics[0].Metrics {
			if m.Name == "messaging.client.sent.messages" {
				fmt.Println(m.Name, m.Data.(metricdata.Sum[int64]).DataPoints[0].Value)
			}
		}
		fmt.Println(sys.MeterProvider() == provider)
	})
	// Output:
	// messaging.client.sent.messages 1
	// true
}
