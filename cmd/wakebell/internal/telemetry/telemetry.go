// Package telemetry exports what node and beat report: by OTLP, as the standard OTEL_*
// variables of the environment say, and metrics as Prometheus text over HTTP.
package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	nometrics "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/internal/loglimit"
)

const (
	// flushLimit bounds the last export at the end of a process.
	flushLimit = 2 * time.Second

	// logEvery is the interval of log lines about failed exports.
	logEvery = time.Minute

	// Environment lists the variables, for the help of a command.
	Environment = `With OTEL_EXPORTER_OTLP_ENDPOINT set, spans and metrics are exported by OTLP;
with OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or _METRICS_ENDPOINT one of them. The
other variables are those of OpenTelemetry: OTEL_EXPORTER_OTLP_PROTOCOL
(http/protobuf or grpc), OTEL_TRACES_SAMPLER, OTEL_SERVICE_NAME,
OTEL_RESOURCE_ATTRIBUTES, OTEL_SDK_DISABLED and so on. An exporter that fails or
hangs delays no delivery, and the exit by at most 2 s.`
)

// Telemetry has the providers of a process.
type Telemetry struct {
	// TracerProvider is that of the exporter; without one it does nothing.
	TracerProvider trace.TracerProvider
	// MeterProvider is that of all exporters; without one it measures nothing.
	MeterProvider metric.MeterProvider
	// Metrics is the address at which metrics are served; empty: none are.
	Metrics string

	stops []func(context.Context) error
	log   *slog.Logger
}

// Start starts the exporters that the flags and the environment ask for. It connects to
// nothing yet. Errors are about the flags and the environment, or about listening.
func Start(ctx context.Context, f Flags, log *slog.Logger) (*Telemetry, error) {
	t := &Telemetry{TracerProvider: noop.NewTracerProvider(), MeterProvider: nometrics.NewMeterProvider(), log: log}
	otel.SetErrorHandler(&failures{log: log, limit: loglimit.Limiter{Every: logEvery}})
	err := t.measure(ctx, f)
	if err == nil {
		err = t.trace(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, t.end())
	}
	return t, nil
}

// Stop exports what is left and ends the exporters. It takes at most 2 s.
func (t *Telemetry) Stop() {
	if err := t.end(); err != nil {
		t.log.Warn("telemetry was not exported completely", "err", err)
	}
}

func (t *Telemetry) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), flushLimit)
	defer cancel()
	ended := make(chan error, 1)
	go func() { // an exporter need not heed its context
		var errs []error
		for _, stop := range t.stops {
			errs = append(errs, stop(ctx))
		}
		ended <- errors.Join(errs...)
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// failures logs the errors of exporters.
type failures struct {
	log   *slog.Logger
	limit loglimit.Limiter
}

// Handle implements otel.ErrorHandler.
func (f *failures) Handle(err error) {
	if skipped, ok := f.limit.Allow(""); ok {
		f.log.Warn("telemetry failed", "err", err, "skipped", skipped)
	}
}

// describe returns the attributes of this process. Those of the environment
// precede.
func describe(ctx context.Context) (*resource.Resource, error) {
	r, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "wakebell")),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithProcessPID(),
		resource.WithFromEnv(),
	)
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, cli.Usagef("OTEL_RESOURCE_ATTRIBUTES: %v", err)
	}
	return r, nil
}

// exports reports whether a signal, TRACES or METRICS, is exported, and with which
// of the protocols grpc and http/protobuf.
func exports(signal string) (protocol string, on bool, err error) {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return "", false, nil
	}
	endpoint := variable("EXPORTER_OTLP", signal, "ENDPOINT")
	exporter := "OTEL_" + signal + "_EXPORTER"
	switch named := os.Getenv(exporter); {
	case named == "none", named == "" && endpoint == "":
		return "", false, nil
	case named != "" && named != "otlp":
		return "", false, cli.Usagef("%s: %q, want otlp or none", exporter, named)
	}
	switch protocol = variable("EXPORTER_OTLP", signal, "PROTOCOL"); protocol {
	case "":
		return "http/protobuf", true, nil
	case "grpc", "http/protobuf":
		return protocol, true, nil
	default:
		return "", false, cli.Usagef("OTEL_EXPORTER_OTLP_PROTOCOL: %q, want http/protobuf or grpc", protocol)
	}
}

// variable returns a variable of a signal, or else that of all signals.
func variable(of, signal, name string) string {
	if value := os.Getenv("OTEL_" + of + "_" + signal + "_" + name); value != "" {
		return value
	}
	return os.Getenv("OTEL_" + of + "_" + name)
}
