package flow_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// A snooze delays a timer without a failure: neither attempts nor failures are used up, with
// and without keys.
func TestSnoozesUseUpNoAttempts(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]wakebell.HandlerOption{
		"plain": nil, "keyed": {wakebell.PerKey(1)}, "limited": {wakebell.RateLimit(100, time.Second, 100)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			topic := wakebell.NewTopic[int]("calls")
			var calls []string
			handle := func(_ context.Context, timer wakebell.Timer[int]) error {
				calls = append(calls, fmt.Sprint(timer.Attempt, timer.Failures))
				switch {
				case len(calls) <= 15: // more than MaxAttempts, and than the cap of claims
					return fmt.Errorf("the shop is closed: %w", wakebell.Snooze(time.Minute))
				case len(calls) == 16:
					return errors.New("failed")
				case len(calls) == 17:
					return wakebell.Snooze(time.Minute)
				}
				return nil
			}
			opts = append(opts, wakebell.MaxAttempts(2), wakebell.RetryBackoff(time.Second, time.Second))
			cfg := wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(topic, handle, opts...)}}
			wakebelltest.Run(t, cfg, func(t *testing.T, w *wakebelltest.World) {
				scheduled, err := w.Client().Schedule(t.Context(), topic.Draft(1, wakebell.ID("a"), wakebell.Key("k")))
				require.NoError(t, err)
				w.Advance(30 * time.Second)
				require.Len(t, calls, 1)
				info, _, err := w.Client().Get(t.Context(), "calls", "a")
				require.NoError(t, err)
				require.Zero(t, info.Attempts)
				require.Zero(t, info.Failures)
				require.Equal(t, scheduled[0].Due, info.Activation, "its instant stays")
				w.Advance(20 * time.Minute)
				require.Len(t, calls, 18)
				for i, call := range calls {
					want := "1 0"
					if i > 15 {
						want = "2 1"
					}
					require.Equal(t, want, call, "call %d", i)
				}
				delivered := w.Delivered("calls")
				require.Equal(t, wakebelltest.Snoozed, delivered[0].Outcome)
				require.Equal(t, wakebelltest.Retried, delivered[15].Outcome)
				require.Equal(t, wakebelltest.Acked, delivered[17].Outcome)
				dead, err := w.Client().LastDead(t.Context(), "calls", 10)
				require.NoError(t, err)
				require.Empty(t, dead)
			})
		})
	}
}

func TestSnoozeIsBounded(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{-1, 0, wakebell.MinSnooze - 1, wakebell.MaxSnooze + 1} {
		err := wakebell.Snooze(d)
		require.ErrorIs(t, err, wakebell.ErrInvalid)
		require.ErrorContains(t, err, "want 1ms to 8760h0m0s")
		_, snoozed := wakebell.SnoozeDelay(err)
		require.False(t, snoozed)
	}
	d, snoozed := wakebell.SnoozeDelay(fmt.Errorf("later: %w", wakebell.Snooze(time.Hour)))
	require.True(t, snoozed)
	require.Equal(t, time.Hour, d)
}

// TestSnoozeIsNoLateness checks that a timer that was snoozed has begun at its first delivery:
// what it has waited since then is not how late it was, in counts, counters and metrics.
func TestSnoozeIsNoLateness(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[int]("calls")
	snoozes := 0
	snooze := func() error {
		if snoozes++; snoozes <= 3 {
			return wakebell.Snooze(time.Hour)
		}
		return nil
	}
	one := func(context.Context, wakebell.Timer[int]) error { return snooze() }
	batch := func(context.Context, []wakebell.Timer[int]) error { return snooze() }
	for name, handler := range map[string]wakebell.Handler{
		"plain": wakebell.Handle(topic, one), "keyed": wakebell.Handle(topic, one, wakebell.PerKey(1)), "batch": wakebell.HandleBatch(topic, batch),
	} {
		t.Run(name, func(t *testing.T) {
			snoozes = 0
			reader := sdk.NewManualReader()
			on := connection.Config{Logger: stacktest.Quiet, MeterProvider: sdk.NewMeterProvider(sdk.WithReader(reader))}
			wakebelltest.RunWith(t, on, wakebell.Config{Handlers: []wakebell.Handler{handler}}, func(t *testing.T, w *wakebelltest.World) {
				_, err := w.Client().Schedule(t.Context(), topic.Draft(1, wakebell.ID("a"), wakebell.Key("k")))
				require.NoError(t, err)
				w.Advance(5 * time.Hour)
				counters := w.Nodes()[0].System().Counters()["calls"]
				require.EqualValues(t, 1, counters.Acked)
				require.EqualValues(t, 4, counters.Delivered)
				require.EqualValues(t, 3, counters.Repeated)
				found, err := w.Client().Throughput(t.Context(), "calls", 24*time.Hour)
				require.NoError(t, err)
				sum := wakebelltype.ThroughputCounts{}
				for _, p := range found.Points {
					sum.Add(p)
				}
				require.EqualValues(t, 1, sum.Started)
				require.Less(t, sum.MaxLateness, time.Minute)
				var collected metricdata.ResourceMetrics
				require.NoError(t, reader.Collect(t.Context(), &collected))
				for _, m := range collected.ScopeMetrics[0].Metrics {
					if m.Name == "wakebell.delivery.lateness" {
						points := m.Data.(metricdata.Histogram[float64]).DataPoints
						require.Len(t, points, 1)
						require.EqualValues(t, 1, points[0].Count)
					}
				}
			})
		})
	}
}
