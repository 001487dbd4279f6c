package telemetry

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	sdk "go.opentelemetry.io/otel/sdk/metric"
)

// Flags are the flags of a command that exports metrics.
type Flags struct {
	Address string // where metrics are served; empty: nowhere
	Topics  int    // with a label of their own
	Shards  bool   // each is measured by itself
}

// Register adds the flags.
func (f *Flags) Register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.Address, "metrics", "", "`address` to serve /metrics over HTTP for Prometheus, as 127.0.0.1:9090; empty: none")
	flags.IntVar(&f.Topics, "metric-topics", 1000, "how many topics, queues and gates each have a label of their own in the metrics")
	flags.BoolVar(&f.Shards, "metric-shards", false, "measure each shard of a topic by itself")
}

// measure sets MeterProvider, if metrics are served or exported.
func (t *Telemetry) measure(ctx context.Context, f Flags) error {
	var options []sdk.Option
	if f.Address != "" {
		reader, server, err := serve(f.Address, t.log)
		if err != nil {
			return err
		}
		t.Metrics, t.stops = server.address, append(t.stops, server.stop)
		options = append(options, sdk.WithReader(reader))
	}
	protocol, on, err := exports("METRICS")
	if err != nil {
		return err
	}
	if on {
		exporter, err := metricExporter(ctx, protocol)
		if err != nil {
			return fmt.Errorf("start the exporter of metrics: %w", err)
		}
		options = append(options, sdk.WithReader(sdk.NewPeriodicReader(exporter)))
	}
	if len(options) == 0 {
		return nil
	}
	of, err := describe(ctx)
	if err != nil {
		return err
	}
	// Package metrics bounds the number of series.
	provider := sdk.NewMeterProvider(append(options, sdk.WithResource(of), sdk.WithCardinalityLimit(0))...)
	t.MeterProvider, t.stops = provider, append(t.stops, provider.Shutdown)
	return nil
}

// metricExporter returns an exporter of exponential histograms, which need no bounds
// of buckets, unless the environment wants others.
func metricExporter(ctx context.Context, protocol string) (sdk.Exporter, error) {
	choose := os.Getenv("OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION") == ""
	if protocol == "grpc" {
		var options []otlpmetricgrpc.Option
		if choose {
			options = append(options, otlpmetricgrpc.WithAggregationSelector(aggregation))
		}
		return otlpmetricgrpc.New(ctx, options...)
	}
	var options []otlpmetrichttp.Option
	if choose {
		options = append(options, otlpmetrichttp.WithAggregationSelector(aggregation))
	}
	return otlpmetrichttp.New(ctx, options...)
}

func aggregation(kind sdk.InstrumentKind) sdk.Aggregation {
	if kind == sdk.InstrumentKindHistogram {
		return sdk.AggregationBase2ExponentialHistogram{MaxSize: 160, MaxScale: 20}
	}
	return sdk.DefaultAggregationSelector(kind)
}
