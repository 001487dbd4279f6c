package observe_test

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	cpu "github.com/wakebell/wakebell/internal/meter"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
)

// ignores is an exporter that drops its spans.
type ignores struct{}

func (ignores) ExportSpans(context.Context, []sdk.ReadOnlySpan) error { return nil }
func (ignores) Shutdown(context.Context) error                        { return nil }

// BenchmarkTracing delivers due timers of 100 bytes to a no-op handler without tracing,
// with a provider that does nothing, and with 1 % and all of the spans sampled. The four
// alternate in one run, and the medians are reported: the rate, and the CPU time of this
// process for a timer, which other programs disturb less. The baseline without tracing
// is measured twice, which shows the noise.
func BenchmarkTracing(b *testing.B) {
	const rounds = 9
	sampled := func(ratio float64) oteltrace.TracerProvider {
		provider := sdk.NewTracerProvider(sdk.WithBatcher(ignores{}), sdk.WithSampler(sdk.TraceIDRatioBased(ratio)))
		b.Cleanup(func() { _ = provider.Shutdown(context.WithoutCancel(b.Context())) })
		return provider
	}
	variants := []struct {
		name     string
		provider oteltrace.TracerProvider
	}{{"off", nil}, {"off-again", nil}, {"noop", noop.NewTracerProvider()}, {"1%", sampled(0.01)}, {"all", sampled(1)}}
	for range b.N {
		rates, costs := make([][]float64, len(variants)), make([][]float64, len(variants))
		for round := range rounds {
			for i := range variants {
				i = (i + round) % len(variants)
				rate, cost := deliveredPerSecond(b, variants[i].provider)
				rates[i], costs[i] = append(rates[i], rate), append(costs[i], cost)
			}
		}
		for i, v := range variants {
			slices.Sort(rates[i])
			slices.Sort(costs[i])
			b.ReportMetric(rates[i][rounds/2], v.name+"-timers/s")
			b.ReportMetric(costs[i][rounds/2], v.name+"-cpu-µs/timer")
		}
	}
}

// deliveredPerSecond returns the rate of a System with a backlog, and the CPU time of this
// process for a timer, in microseconds.
func deliveredPerSecond(b *testing.B, provider oteltrace.TracerProvider) (rate, cost float64) {
	b.Helper()
	const timers = 40_000
	topic, body := wakebell.NewTopic[[]byte](redistest.Name(b)), bytes.Repeat([]byte("x"), 100)
	var handled atomic.Int64
	done := make(chan struct{})
	sys := stacktest.BuildOn(b, conntest.New(b, redistest.Shared(b), connection.Config{TracerProvider: provider}), wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.Handle(topic, func(context.Context, wakebell.Timer[[]byte]) error {
			if handled.Add(1) == timers {
				close(done)
			}
			return nil
		}, wakebell.MaxConcurrent(200))},
	})
	for sent := 0; sent < timers; sent += 500 {
		drafts := make([]wakebell.Draft, 500)
		for i := range drafts {
			drafts[i] = topic.Draft(body)
		}
		_, err := sys.Client().Schedule(b.Context(), drafts...)
		require.NoError(b, err)
	}
	runtime.GC()
	began, used := time.Now(), cpu.ProcessCPU()
	require.NoError(b, sys.Start(b.Context()))
	<-done
	took, spent := time.Since(began), cpu.ProcessCPU()-used
	require.NoError(b, sys.Stop())
	return timers / took.Seconds(), float64(spent.Nanoseconds()) / 1e3 / timers
}
