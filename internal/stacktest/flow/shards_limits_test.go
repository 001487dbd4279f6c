package flow_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltest"
)

// TestShardsOfRunningTopicShareMaxConcurrent divides a topic while a node handles it. A
// client that has read the map before stores timers where the topic was, so the poller
// that existed before and the new ones have a backlog at the same time.
func TestShardsOfRunningTopicShareMaxConcurrent(t *testing.T) {
	t.Parallel()
	const most = 3
	var running, highest atomic.Int64
	topic := wakebell.NewTopic[string]("orders")
	handle := func(context.Context, wakebell.Timer[string]) error {
		now := running.Add(1)
		highest.Store(max(highest.Load(), now)) // a race only lowers it
		<-time.After(100 * time.Millisecond)
		running.Add(-1)
		return nil
	}
	var log bytes.Buffer
	wakebelltest.RunWith(t, connection.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.Handle(topic, handle, wakebell.MaxConcurrent(most), wakebell.MaxInFlight(3))},
	}, func(t *testing.T, w *wakebelltest.World) {
		stale, err := wakebell.NewClient(conntest.New(t, w.Redis(), connection.Config{}))
		require.NoError(t, err)
		_, err = stale.Stats(t.Context(), topic.Name())
		require.NoError(t, err)
		_, err = w.Client().Divide(t.Context(), topic.Name(), 4)
		require.NoError(t, err)
		later := make([]wakebell.Draft, 50)
		for i := range later {
			later[i] = topic.Draft("x", wakebell.In(10*time.Second))
		}
		_, err = stale.Schedule(t.Context(), later...)
		require.NoError(t, err)
		w.Advance(5 * time.Second)
		for i := range later {
			later[i] = topic.Draft("x", wakebell.In(5*time.Second))
		}
		_, err = w.Client().Schedule(t.Context(), later...)
		require.NoError(t, err)
		w.Advance(time.Minute)
		require.Len(t, w.Delivered(topic.Name()), 100)
		require.EqualValues(t, most, highest.Load())
	})
	require.Contains(t, log.String(), `msg="MaxInFlight is less than the number of shards; each shard has 1" topic=orders max_in_flight=3 shards=4`)
}

// TestHandlerHasLeaseForEachShard rejects a MaxInFlight that stops some shards.
func TestHandlerHasLeaseForEachShard(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string]("orders")
	handle := func(context.Context, wakebell.Timer[string]) error { return nil }
	_, err := wakebell.New(stacktest.ActorSystem(), conntest.New(t, redistest.Shared(t), connection.Config{}), wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, handle, wakebell.Shards(4), wakebell.MaxInFlight(3)),
	}})
	require.ErrorIs(t, err, wakebell.ErrInvalid)
	require.ErrorContains(t, err, "MaxInFlight: 3, want at least the number of shards, 4")
}

// TestRateIsNotDividedByShardsThatTimersHaveLeft divides a topic while a node handles it:
// nodes handle the shards before for ten minutes more.
func TestRateIsNotDividedByShardsThatTimersHaveLeft(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string]("orders")
	handle := func(context.Context, wakebell.Timer[string]) error { return nil }
	wakebelltest.Run(t, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, handle, wakebell.Shards(4), wakebell.RateLimit(40, time.Second, 1)),
	}}, func(t *testing.T, w *wakebelltest.World) {
		w.Advance(time.Minute)
		_, err := w.Client().Divide(t.Context(), topic.Name(), 1)
		require.NoError(t, err)
		w.Advance(time.Minute)
		drafts := make([]wakebell.Draft, 400)
		for i := range drafts {
			drafts[i] = topic.Draft("x")
		}
		_, err = w.Client().Schedule(t.Context(), drafts...)
		require.NoError(t, err)
		w.Advance(20 * time.Second)
		require.Len(t, w.Delivered(topic.Name()), 400)
	})
}

// TestMaxInFlightHoldsWhileTimersMove reshards a topic whose handlers take longer than the
// waits of a change.
func TestMaxInFlightHoldsWhileTimersMove(t *testing.T) {
	t.Parallel()
	const most = 8
	var running, highest atomic.Int64
	topic := wakebell.NewTopic[string]("orders")
	handle := func(context.Context, wakebell.Timer[string]) error {
		highest.Store(max(highest.Load(), running.Add(1)))
		<-time.After(20 * time.Second)
		running.Add(-1)
		return nil
	}
	wakebelltest.Run(t, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, handle, wakebell.Shards(4), wakebell.MaxInFlight(most), wakebell.MaxConcurrent(100)),
	}}, func(t *testing.T, w *wakebelltest.World) {
		w.Advance(15 * time.Minute)
		drafts := make([]wakebell.Draft, 60)
		for i := range drafts {
			drafts[i] = topic.Draft("x")
		}
		_, err := w.Client().Schedule(t.Context(), drafts...)
		require.NoError(t, err)
		for _, err := range w.Client().Reshard(t.Context(), topic.Name(), 8) {
			require.NoError(t, err)
		}
		w.Advance(10 * time.Minute)
		require.Len(t, w.Delivered(topic.Name()), 60)
		require.LessOrEqual(t, highest.Load(), int64(most))
	})
}
