// Package telemetry exports the metrics of a command: as Prometheus text over HTTP,
// and over OTLP as the standard OTEL_* variables say.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

// lastExport bounds the last export when a command ends.
const lastExport = 3 * time.Second

// Flags are the flags of a command that exports metrics.
type Flags struct {
	Address string
	Topics  int
}

// Register adds the flags.
func (f *Flags) Register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.Address, "metrics", "", "`address` to serve /metrics over HTTP for Prometheus, as 127.0.0.1:9090; empty: none")
	flags.IntVar(&f.Topics, "metric-topics", 1000, "how many topics, queues and gates each have a label of their own in the metrics")
}

// Metrics are the exporters of a process.
type Metrics struct {
	Provider metric.MeterProvider // measures nothing if there is no exporter
	sdk      *sdk.MeterProvider   // nil: there is no exporter
	server   *server              // nil: nothing is served
}

// Start starts the exporters. The process ends them with Stop.
func Start(ctx context.Context, f Flags, log *slog.Logger) (*Metrics, error) {
	if f.Topics < 1 {
		return nil, cli.Usagef("--metric-topics: %d, want at least 1", f.Topics)
	}
	var options []sdk.Option
	m := &Metrics{Provider: noop.NewMeterProvider()}
	if f.Address != "" {
		reader, server, err := serve(f.Address, log)
		if err != nil {
			return nil, err
		}
		m.server = server
		options = append(options, sdk.WithReader(reader))
	}
	exporter, err := otlp(ctx)
	if err != nil {
		return nil, errors.Join(err, m.Stop())
	}
	if exporter != nil {
		options = append(options, sdk.WithReader(sdk.NewPeriodicReader(exporter)))
	}
	if len(options) == 0 {
		return m, nil
	}
	of, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "wakebell")),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err), m.Stop())
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("metrics were not exported", "err", err) }))
	// Package metrics bounds the number of series itself.
	m.sdk = sdk.NewMeterProvider(append(options, sdk.WithResource(of), sdk.WithCardinalityLimit(0))...)
	m.Provider = m.sdk
	return m, nil
}

// Stop exports for the last time, and ends the exporters.
func (m *Metrics) Stop() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), lastExport)
	defer cancel()
	if m.server != nil {
		err = m.server.stop(ctx)
	}
	if m.sdk != nil {
		if failed := m.sdk.Shutdown(ctx); failed != nil {
			otel.Handle(failed) // what is lost does not change the result of the command
		}
	}
	return err
}

// Address returns where metrics are served; empty: nowhere.
func (m *Metrics) Address() string {
	if m.server == nil {
		return ""
	}
	return m.server.address
}

// otlp returns the exporter that the OTEL_* variables configure; nil: none. It is
// used if OTEL_METRICS_EXPORTER is otlp, or an endpoint is set.
func otlp(ctx context.Context) (sdk.Exporter, error) {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return nil, nil
	}
	switch name := os.Getenv("OTEL_METRICS_EXPORTER"); name {
	case "otlp":
	case "":
		if first("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT") == "" {
			return nil, nil
		}
	case "none", "prometheus": // the latter is --metrics
		return nil, nil
	default:
		return nil, cli.Usagef("OTEL_METRICS_EXPORTER: %q, want otlp or none", name)
	}
	exponential := os.Getenv("OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION") == ""
	var exporter sdk.Exporter
	var err error
	switch protocol := first("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"); protocol {
	case "grpc":
		var options []otlpmetricgrpc.Option
		if exponential {
			options = append(options, otlpmetricgrpc.WithAggregationSelector(aggregation))
		}
		exporter, err = otlpmetricgrpc.New(ctx, options...)
	case "", "http/protobuf":
		var options []otlpmetrichttp.Option
		if exponential {
			options = append(options, otlpmetrichttp.WithAggregationSelector(aggregation))
		}
		exporter, err = otlpmetrichttp.New(ctx, options...)
	default:
		return nil, cli.Usagef("OTEL_EXPORTER_OTLP_PROTOCOL: %q, want http/protobuf or grpc", protocol)
	}
	if err != nil {
		return nil, fmt.Errorf("start the OTLP exporter: %w", err)
	}
	return exporter, nil
}

// aggregation makes histograms exponential, which need no bounds of buckets.
func aggregation(kind sdk.InstrumentKind) sdk.Aggregation {
	if kind == sdk.InstrumentKindHistogram {
		return sdk.AggregationBase2ExponentialHistogram{MaxSize: 160, MaxScale: 20}
	}
	return sdk.DefaultAggregationSelector(kind)
}

// first returns the first of the variables that is set.
func first(names ...string) string {
	for _, name := range names {
		if value := os.Getenv(name); value != "" {
			return value
		}
	}
	return ""
}
