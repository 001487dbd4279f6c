package forecast_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/forecast"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestForecastComesTrue forecasts a topic with a prefix, shards, a rate limit and a recurring
// schedule, and compares with when the timers are handled.
func TestForecastComesTrue(t *testing.T) {
	t.Parallel()
	invoices := wakebell.NewTopic[string]("invoices")
	var last atomic.Pointer[time.Time]
	handle := func(_ context.Context, timer wakebell.Timer[string]) error {
		if timer.Body == "one of many" {
			now := time.Now()
			last.Store(&now)
		}
		return nil
	}
	wakebelltest.RunWith(t, connection.Config{Prefix: "shop:"}, wakebell.Config{}, func(t *testing.T, w *wakebelltest.World) {
		ctx, c := t.Context(), w.Client()
		_, err := c.Divide(ctx, "invoices", 3)
		require.NoError(t, err)
		<-time.After(time.Minute)
		midnight := time.Now().Truncate(time.Minute).Add(2 * time.Hour)
		for i := range 300 {
			_, err := invoices.Schedule(ctx, c, "one of many", wakebell.ID(fmt.Sprint(i)), wakebell.At(midnight))
			require.NoError(t, err)
		}
		_, err = invoices.Schedule(ctx, c, "late already", wakebell.At(time.Now().Add(-time.Hour)))
		require.NoError(t, err)
		schedule := recurring.Schedule{Name: "hourly", Topic: "invoices", Rule: recurring.Rule{Every: time.Hour}}
		require.NoError(t, c.Schedules().Put(ctx, schedule))
		forecasts := func(o forecast.Options) forecast.Forecast {
			t.Helper()
			f, err := forecast.Of(ctx, c, c.Schedules(), o)
			require.NoError(t, err)
			require.Empty(t, f.Unread)
			return f
		}

		f := forecasts(forecast.Options{})
		require.Equal(t, 30*time.Minute, f.Step)
		require.Len(t, f.Bars, 48)
		require.EqualValues(t, 1, f.Overdue)
		require.EqualValues(t, 300+23, f.Total, "of the schedule only the runs that are to come")
		require.Equal(t, midnight.UTC(), f.Peak.At)
		require.InDelta(t, 300, f.Peak.Count, 1)
		require.True(t, f.Peak.Exact)
		require.Len(t, f.Topics, 1)
		require.Equal(t, "invoices", f.Topics[0].Name)
		require.Empty(t, f.Topics[0].Warnings, "no node, so no limit, and nothing was ever handled")
		require.Equal(t, f.Topics, forecasts(forecast.Options{Topics: []string{"invoices"}}).Topics)
		require.InDelta(t, 1, forecasts(forecast.Options{For: time.Hour}).Total, 1, "a run of the schedule")

		w.Start(wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(invoices, handle, wakebell.RateLimit(30, time.Minute, 30))}})
		<-time.After(2 * time.Minute)
		f = forecasts(forecast.Options{})
		require.Zero(t, f.Overdue)
		of := f.Topics[0]
		require.InDelta(t, 30, of.Limit, 1e-9)
		require.EqualValues(t, 1, of.Best)
		require.Len(t, of.Warnings, 2)
		limited, slow := of.Warnings[0], of.Warnings[1]
		require.Equal(t, forecast.CauseRate, limited.Cause)
		require.Equal(t, midnight.UTC(), limited.From)
		require.InDelta(t, 9.5, limited.Late.Minutes(), 1)
		require.Equal(t, forecast.CauseNodes, slow.Cause)

		<-time.After(3 * time.Hour)
		require.WithinDuration(t, midnight.Add(limited.Late), *last.Load(), 2*time.Minute)
	})
}

// A schedule with MaxRuns has no more runs in a forecast than are left.
func TestForecastEndsWithMaxRuns(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, wakebell.Config{}, func(t *testing.T, w *wakebelltest.World) {
		ctx, c := t.Context(), w.Client()
		rule := recurring.Rule{Every: time.Hour, Start: time.Now().Add(time.Hour), MaxRuns: 3}
		require.NoError(t, c.Schedules().Put(ctx, recurring.Schedule{Name: "thrice", Topic: "invoices", Rule: rule}))
		total := func() int64 {
			f, err := forecast.Of(ctx, c, c.Schedules(), forecast.Options{})
			require.NoError(t, err)
			require.Empty(t, f.Unread)
			return f.Total
		}
		require.EqualValues(t, 3, total())
	})
}

// Timers become due by the clock of Redis, even if that of the process is wrong.
func TestForecastUsesClockOfRedis(t *testing.T) {
	t.Parallel()
	rdb, server := redistest.Embedded(t)
	conn, err := connection.New(rdb, connection.Config{})
	require.NoError(t, err)
	c, err := wakebell.NewClient(conn)
	require.NoError(t, err)
	ctx, topic := t.Context(), wakebell.NewTopic[string]("invoices")
	for _, wrong := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		now := time.Now().Add(wrong).UTC()
		server.SetTime(now)
		f, err := forecast.Of(ctx, c, c.Schedules(), forecast.Options{})
		require.NoError(t, err)
		require.Equal(t, now.Truncate(time.Minute), f.From, "without topics")
		for id, in := range map[string]time.Duration{"late": -time.Hour, "next": 90 * time.Minute, "later": 25 * time.Hour} {
			_, err := topic.Schedule(ctx, c, "", wakebell.ID(id), wakebell.At(now.Add(in)))
			require.NoError(t, err)
		}
		f, err = forecast.Of(ctx, c, nil, forecast.Options{})
		require.NoError(t, err)
		require.Empty(t, f.Unread)
		require.EqualValues(t, 1, f.Overdue)
		require.EqualValues(t, 1, f.Total)
		require.NoError(t, c.Forget(ctx, "invoices"))
	}
}

// someDenied is a Redis whose user may read the topic "mine" alone.
type someDenied struct {
	*stored
	now time.Time // of Redis
}

func (s someDenied) Overview(ctx context.Context, topics ...string) ([]wakebelltype.Overview, error) {
	all, err := s.stored.Overview(ctx, topics...)
	for i := range all {
		if all[i].Topic != "mine" {
			all[i].Err = wakebelltype.ErrDenied
		}
	}
	return all, err
}

func (s someDenied) Throughput(_ context.Context, topic string, _ time.Duration) (wakebelltype.Throughput, error) {
	if topic != "mine" {
		return wakebelltype.Throughput{}, wakebelltype.ErrDenied
	}
	return wakebelltype.Throughput{Step: time.Minute, Points: []wakebelltype.ThroughputCounts{{At: s.now}}}, nil
}

// The clock of Redis is read from a topic that may be read, and without one no line says so.
func TestForecastReadsClockWithFewRights(t *testing.T) {
	t.Parallel()
	c := someDenied{&stored{timers: map[string][]time.Time{"foreign": {time.Now()}, "mine": nil}}, time.Now().Add(48 * time.Hour).UTC().Truncate(time.Minute)}
	f, err := forecast.Of(t.Context(), c, nil, forecast.Options{})
	require.NoError(t, err)
	require.Equal(t, c.now, f.From)
	require.Equal(t, []string{"foreign: " + wakebelltype.ErrDenied.Error()}, f.Unread)
	clear(c.timers)
	f, err = forecast.Of(t.Context(), c, nil, forecast.Options{})
	require.NoError(t, err)
	require.Empty(t, f.Unread)
}
