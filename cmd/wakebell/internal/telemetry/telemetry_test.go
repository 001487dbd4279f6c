package telemetry_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	nometrics "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace/noop"
	metrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/telemetry"
)

func TestSpansReachCollector(t *testing.T) {
	got := make(chan *collector.ExportTraceServiceRequest, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		request := &collector.ExportTraceServiceRequest{}
		if r.URL.Path == "/v1/traces" && proto.Unmarshal(body, request) == nil {
			got <- request
		}
	}))
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")

	started, err := telemetry.Start(t.Context(), telemetry.Flags{}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	_, span := started.TracerProvider.Tracer("test").Start(t.Context(), "a span")
	span.End()
	started.Stop()

	spans := (<-got).GetResourceSpans()
	require.Equal(t, "a span", spans[0].GetScopeSpans()[0].GetSpans()[0].GetName())
	described := map[string]string{}
	for _, a := range spans[0].GetResource().GetAttributes() {
		described[a.GetKey()] = a.GetValue().GetStringValue()
	}
	require.Equal(t, "wakebell", described["service.name"])
	require.Equal(t, "test", described["deployment.environment.name"])
}

// TestHangingCollectorDoesNotHoldExit has a collector that answers when the test
// has ended, and an exporter that would wait an hour for it.
func TestHangingCollectorDoesNotHoldExit(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "3600000")

	for _, protocol := range []string{"http/protobuf", "grpc"} {
		t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
		started, err := telemetry.Start(t.Context(), telemetry.Flags{}, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		for range 10_000 { // more than its queue has room for
			_, span := started.TracerProvider.Tracer("test").Start(t.Context(), "a span")
			span.End()
		}
		started.Stop()
	}
}

func TestEnvironmentDecides(t *testing.T) {
	for name, c := range map[string]struct {
		set  map[string]string
		on   bool
		text string // of the error
	}{
		"no endpoint": {},
		"disabled":    {set: map[string]string{"OTEL_SDK_DISABLED": "TRUE", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}},
		"no exporter": {set: map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}},
		"the default endpoint": {
			set: map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, on: true,
		},
		"an endpoint of traces": {
			set: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1/v1/traces"}, on: true,
		},
		"an unknown exporter": {
			set: map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, text: `OTEL_TRACES_EXPORTER: "zipkin", want otlp or none`,
		},
		"an unknown protocol": {
			set:  map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
			text: `OTEL_EXPORTER_OTLP_PROTOCOL: "http/json", want http/protobuf or grpc`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for key, value := range c.set {
				t.Setenv(key, value)
			}
			started, err := telemetry.Start(t.Context(), telemetry.Flags{}, slog.New(slog.DiscardHandler))
			if c.text != "" {
				require.EqualError(t, err, c.text)
				return
			}
			require.NoError(t, err)
			_, off := started.TracerProvider.(noop.TracerProvider)
			require.Equal(t, c.on, !off)
			started.Stop()
		})
	}
}

// Histograms are exported with exponential buckets.
func TestMetricsReachCollector(t *testing.T) {
	got := make(chan *metrics.ExportMetricsServiceRequest, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		request := &metrics.ExportMetricsServiceRequest{}
		if r.URL.Path == "/v1/metrics" && proto.Unmarshal(body, request) == nil {
			got <- request
		}
	}))
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", server.URL+"/v1/metrics")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")

	started, err := telemetry.Start(t.Context(), telemetry.Flags{}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Empty(t, started.Metrics, "nothing is served")
	histogram, err := started.MeterProvider.Meter("test").Float64Histogram("a.duration")
	require.NoError(t, err)
	histogram.Record(t.Context(), 3)
	started.Stop()

	exported := (<-got).GetResourceMetrics()[0].GetScopeMetrics()[0].GetMetrics()[0]
	require.Equal(t, "a.duration", exported.GetName())
	require.InDelta(t, 3, exported.GetExponentialHistogram().GetDataPoints()[0].GetSum(), 0.001)
}

// A node without an exporter measures nothing.
func TestNothingIsMeasuredWithoutExporter(t *testing.T) {
	started, err := telemetry.Start(t.Context(), telemetry.Flags{}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer started.Stop()
	require.IsType(t, nometrics.MeterProvider{}, started.MeterProvider)
	_, err = telemetry.Start(t.Context(), telemetry.Flags{Address: "127.0.0.1:no"}, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "--metrics: listen")
}
