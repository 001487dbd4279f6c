package batch_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestLonelyTimerWaitsForBatchWait(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		topic := wakebell.NewTopic[string]("t")
		var got batches
		at := make(chan time.Time, 10)
		sys := stacktest.Serve(t, rdb, wakebell.HandleBatch(topic, func(_ context.Context, timers []wakebell.Timer[string]) error {
			got.add(timers)
			at <- time.Now()
			return nil
		}, wakebell.BatchSize(3), wakebell.BatchWait(2*time.Second)))
		began := time.Now()
		stacktest.ScheduleAll(t, sys.Client(), topic, []string{"lonely"})
		require.WithinDuration(t, began.Add(2*time.Second), <-at, 10*time.Millisecond)

		began = time.Now()
		stacktest.ScheduleAll(t, sys.Client(), topic, []string{"a"})
		<-time.After(time.Second)
		stacktest.ScheduleAll(t, sys.Client(), topic, []string{"b"})
		require.WithinDuration(t, began.Add(2*time.Second), <-at, 10*time.Millisecond, "the first one decides")

		began = time.Now()
		stacktest.ScheduleAll(t, sys.Client(), topic, []string{"c", "d", "e"})
		require.WithinDuration(t, began, <-at, 10*time.Millisecond, "a full batch does not wait")
		require.Equal(t, [][]string{{"lonely"}, {"a", "b"}, {"c", "d", "e"}}, got.all())
	})
}

func TestBatchWaitIsBelowLease(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		topic := wakebell.NewTopic[string]("t")
		at := make(chan time.Time, 10)
		sys := stacktest.Serve(t, rdb, wakebell.HandleBatch(topic, func(context.Context, []wakebell.Timer[string]) error {
			at <- time.Now()
			return nil
		}, wakebell.BatchWait(time.Hour), wakebell.LeaseTTL(3*time.Second)))
		began := time.Now()
		stacktest.ScheduleAll(t, sys.Client(), topic, []string{"a"})
		require.WithinDuration(t, began.Add(time.Second), <-at, 10*time.Millisecond)
	})
}

func TestRetuneBoundsBatchesAtOnce(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		topic := wakebell.NewTopic[string]("t")
		var mu sync.Mutex
		running, most := 0, 0
		add := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			running += n
			most = max(most, running)
		}
		sys := stacktest.Serve(t, rdb, wakebell.HandleBatch(topic, func(context.Context, []wakebell.Timer[string]) error {
			add(1)
			<-time.After(time.Second)
			add(-1)
			return nil
		}, wakebell.BatchSize(2), wakebell.MaxConcurrent(4)))
		measure := func(n int) (int, time.Duration) {
			mu.Lock()
			most = 0
			mu.Unlock()
			before, began := sys.Counters()["t"].Acked, time.Now()
			stacktest.ScheduleAll(t, sys.Client(), topic, stacktest.Numbered(n))
			stacktest.AwaitCounters(t, sys, "t", func(c wakebelltype.Counters) bool { return c.Acked == before+int64(n) })
			mu.Lock()
			defer mu.Unlock()
			return most, time.Since(began).Round(time.Second)
		}
		retune := func(n int) { require.NoError(t, sys.RetuneLocal("t", wakebell.MaxConcurrent(n))) }
		most, took := measure(16)
		require.Equal(t, 4, most)
		require.Equal(t, 2*time.Second, took)
		retune(1)
		most, took = measure(6)
		require.Equal(t, 1, most, "workers of the time before take no batch")
		require.Equal(t, 3*time.Second, took)
		retune(3)
		most, _ = measure(12)
		require.Equal(t, 3, most)
	})
}

// A running batch occupies a whole slot, however few timers it has: what a node cannot
// handle is left to others.
func TestSmallBatchOccupiesWholeSlot(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		topic := wakebell.NewTopic[string]("t")
		release := make(chan struct{})
		sys := stacktest.Serve(t, rdb, wakebell.HandleBatch(topic, func(context.Context, []wakebell.Timer[string]) error {
			<-release
			return nil
		}, wakebell.BatchSize(100), wakebell.MaxConcurrent(1)))
		stacktest.ScheduleAll(t, sys.Client(), topic, []string{"a"})
		stacktest.Eventually(t, func() bool { return sys.Counters()["t"].Held == 1 })
		stacktest.ScheduleAll(t, sys.Client(), topic, stacktest.Numbered(10))
		<-time.After(time.Minute)
		require.Equal(t, int64(1), sys.Counters()["t"].Held)
		close(release)
		stacktest.AwaitCounters(t, sys, "t", func(c wakebelltype.Counters) bool { return c.Acked == 11 })
	})
}

// TestSizesOfBatchesAreMeasured has a full batch and one of a single timer.
func TestSizesOfBatchesAreMeasured(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		topic := wakebell.NewTopic[string]("t")
		reader := sdk.NewManualReader()
		handler := wakebell.HandleBatch(topic, func(context.Context, []wakebell.Timer[string]) error { return nil },
			wakebell.BatchSize(3), wakebell.BatchWait(time.Second))
		sys := stacktest.Launch(t, stacktest.BuildOn(t, conntest.New(t, rdb, connection.Config{MeterProvider: sdk.NewMeterProvider(sdk.WithReader(reader))}), wakebell.Config{Handlers: []wakebell.Handler{handler}}))
		stacktest.ScheduleAll(t, sys.Client(), topic, []string{"a", "b", "c"})
		<-time.After(2 * time.Second)
		stacktest.ScheduleAll(t, sys.Client(), topic, []string{"d"})
		<-time.After(2 * time.Second)

		var collected metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(t.Context(), &collected))
		metrics := collected.ScopeMetrics[0].Metrics
		i := slices.IndexFunc(metrics, func(m metricdata.Metrics) bool { return m.Name == "wakebell.batch.size" })
		require.GreaterOrEqual(t, i, 0)
		points := metrics[i].Data.(metricdata.Histogram[float64]).DataPoints
		require.Len(t, points, 1)
		require.EqualValues(t, 2, points[0].Count)
		require.InDelta(t, 4, points[0].Sum, 0)
		require.Zero(t, points[0].Attributes.Len(), "it is of all topics")
	})
}
