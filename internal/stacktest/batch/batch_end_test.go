package batch_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/internal/testhook"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestPanicCrashesWholeBatch(t *testing.T) {
	t.Parallel()
	for name, crash := range map[string]func(){"panic": func() { panic("broken") }, "goexit": runtime.Goexit} {
		for with, middleware := range map[string][]wakebell.BatchMiddleware{
			"plain":      nil,
			"middleware": {func(next wakebell.BatchFunc) wakebell.BatchFunc { return next }},
			"in middleware": {func(next wakebell.BatchFunc) wakebell.BatchFunc {
				return func(ctx context.Context, timers []wakebell.Timer[[]byte]) wakebell.BatchError {
					verdicts := next(ctx, timers)
					if timers[0].Attempt == 1 {
						crash()
					}
					return verdicts
				}
			}},
		} {
			t.Run(name+" "+with, func(t *testing.T) {
				t.Parallel()
				stacktest.Virtually(t, func(t *testing.T) {
					rdb, _ := redistest.Embedded(t)
					topic := wakebell.NewTopic[string]("t")
					stacktest.ScheduleAll(t, stacktest.Client(t, rdb, connection.Config{}), topic, stacktest.Numbered(3))
					var got batches
					var log stacktest.Logged
					sys := stacktest.Launch(t, stacktest.BuildOn(t, conntest.New(t, rdb, connection.Config{Logger: log.Logger()}), wakebell.Config{Handlers: []wakebell.Handler{
						wakebell.HandleBatch(topic, func(_ context.Context, timers []wakebell.Timer[string]) error {
							got.add(timers)
							if timers[0].Attempt == 1 && with != "in middleware" {
								crash()
							}
							return nil
						}, wakebell.LeaseTTL(time.Second), wakebell.MaxConcurrent(1), wakebell.WithBatch(middleware...)),
					}}))
					counters := stacktest.AwaitCounters(t, sys, "t", func(c wakebelltype.Counters) bool { return c.Acked == 3 })
					require.Equal(t, int64(3), counters.Crashed)
					require.Zero(t, counters.Retried)
					require.Equal(t, int64(1), counters.HandlerRestarts)
					require.Equal(t, [][]string{stacktest.Numbered(3), stacktest.Numbered(3)}, got.all())
					require.Equal(t, 1, log.Count("batch handler crashed"))
				})
			})
		}
	}
}

func TestEndOfOneLeaseLeavesBatch(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		topic := wakebell.NewTopic[string]("t")
		c := stacktest.Client(t, rdb, connection.Config{})
		stacktest.ScheduleAll(t, c, topic, stacktest.Numbered(4))
		causes, done := make(chan error, 4), make(chan error)
		sys := stacktest.Build(t, rdb, wakebell.Config{Handlers: []wakebell.Handler{
			wakebell.HandleBatch(topic, func(ctx context.Context, timers []wakebell.Timer[string]) error {
				if timers[0].Attempt > 1 {
					return nil
				}
				for _, timer := range timers[:2] {
					<-timer.Context().Done()
					causes <- context.Cause(timer.Context())
				}
				for _, timer := range timers[2:] {
					causes <- timer.Context().Err()
				}
				return errors.Join(ctx.Err(), <-done)
			}, wakebell.LeaseTTL(3*time.Second)),
		}})
		loses := &stacktest.Losing{}
		testhook.Hook(sys, testhook.Hooks{Source: func(s poller.Source) poller.Source {
			loses.Source = s
			return loses
		}})
		stacktest.Launch(t, sys)
		stacktest.Eventually(t, func() bool { return sys.Counters()["t"].Held == 4 })
		_, err := c.Cancel(t.Context(), "t", "t000")
		require.NoError(t, err)
		require.ErrorIs(t, <-causes, wakebell.ErrCancelled)
		loses.ID.Store("t001")
		require.ErrorIs(t, <-causes, wakebell.ErrLeaseLost)
		require.NoError(t, <-causes)
		require.NoError(t, <-causes)
		done <- nil
		counters := stacktest.AwaitCounters(t, sys, "t", func(c wakebelltype.Counters) bool { return c.Acked == 3 })
		require.Equal(t, int64(1), counters.Cancelled)
		require.Equal(t, int64(1), counters.Lost)
		require.Equal(t, int64(5), counters.Delivered, "four, and the lost one again")
	})
}

func TestContextOfBatchEndsWithItsLastTimer(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		topic := wakebell.NewTopic[string]("t")
		c := stacktest.Client(t, rdb, connection.Config{})
		stacktest.ScheduleAll(t, c, topic, stacktest.Numbered(2))
		ended := make(chan error, 1)
		sys := stacktest.Serve(t, rdb, wakebell.HandleBatch(topic, func(ctx context.Context, _ []wakebell.Timer[string]) error {
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return nil
		}))
		stacktest.Eventually(t, func() bool { return sys.Counters()["t"].Held == 2 })
		_, err := c.Cancel(t.Context(), "t", stacktest.Numbered(2)...)
		require.NoError(t, err)
		require.ErrorIs(t, <-ended, wakebell.ErrCancelled)
	})
}

func TestDrainInMiddleOfBatch(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		topic := wakebell.NewTopic[string]("t")
		c := stacktest.Client(t, rdb, connection.Config{})
		stacktest.ScheduleAll(t, c, topic, stacktest.Numbered(5))
		sys := stacktest.Launch(t, stacktest.Build(t, rdb, wakebell.Config{DrainTimeout: time.Second, Handlers: []wakebell.Handler{
			wakebell.HandleBatch(topic, func(ctx context.Context, timers []wakebell.Timer[string]) error {
				<-ctx.Done()
				return wakebell.BatchError{timers[0].ID: context.Cause(ctx)} // the other one is done
			}, wakebell.BatchSize(2), wakebell.BatchWait(5*time.Second), wakebell.MaxConcurrent(3)),
		}}))
		stacktest.Eventually(t, func() bool { return sys.Counters()["t"].Held == 5 })
		began := time.Now()
		require.NoError(t, sys.Stop())
		require.WithinDuration(t, began.Add(time.Second), time.Now(), 100*time.Millisecond)
		counters := sys.Counters()["t"]
		require.Equal(t, int64(2), counters.Acked)
		require.Equal(t, int64(3), counters.Released, "two that were interrupted, one that waited for others")
		stats, err := c.Stats(t.Context(), "t")
		require.NoError(t, err)
		require.Equal(t, int64(3), stats.Due, "they are due at once on another node")
	})
}

func TestMaxLeaseAgeEndsBatch(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		topic := wakebell.NewTopic[string]("t")
		stacktest.ScheduleAll(t, stacktest.Client(t, rdb, connection.Config{}), topic, stacktest.Numbered(3))
		hang := make(chan struct{})
		t.Cleanup(func() { close(hang) })
		var log stacktest.Logged
		var got batches
		sys := stacktest.Launch(t, stacktest.BuildOn(t, conntest.New(t, rdb, connection.Config{Logger: log.Logger()}), wakebell.Config{Handlers: []wakebell.Handler{
			wakebell.HandleBatch(topic, func(_ context.Context, timers []wakebell.Timer[string]) error {
				if got.add(timers); timers[0].Attempt == 1 {
					<-hang
				}
				return nil
			}, wakebell.MaxConcurrent(1), wakebell.MaxLeaseAge(5*time.Second), wakebell.RetryBackoff(time.Second, time.Second)),
		}}))
		counters := stacktest.AwaitCounters(t, sys, "t", func(c wakebelltype.Counters) bool { return c.Acked == 3 })
		require.Equal(t, int64(3), counters.Hung)
		require.Equal(t, int64(3), counters.Retried)
		require.Len(t, got.ids(), 6, "the hung call does not occupy the only slot")
		require.Equal(t, 1, log.Count("ended by the maximum lease age"))
	})
}

// TestMaxLeaseAgeBoundsCall checks that the time in which timers wait for others of their batch
// does not count as that of the handler: neither for its end, nor in what operators see.
func TestMaxLeaseAgeBoundsCall(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		topic := wakebell.NewTopic[string]("t")
		sys := stacktest.Serve(t, rdb, wakebell.HandleBatch(topic, func(ctx context.Context, _ []wakebell.Timer[string]) error {
			select {
			case <-time.After(6 * time.Second):
			case <-ctx.Done():
			}
			return ctx.Err()
		}, wakebell.LeaseTTL(30*time.Second), wakebell.BatchWait(8*time.Second), wakebell.MaxLeaseAge(10*time.Second), wakebell.History(wakebelltype.HistoryAll)))
		began := time.Now()
		stacktest.ScheduleAll(t, sys.Client(), topic, stacktest.Numbered(2))
		<-time.After(12 * time.Second)
		all, err := sys.Client().Overview(t.Context(), "t")
		require.NoError(t, err)
		require.Empty(t, all[0].Longest(), "the handler has run for 4 s")
		counters := stacktest.AwaitCounters(t, sys, "t", func(c wakebelltype.Counters) bool { return c.Acked+c.Retried >= 2 })
		require.Zero(t, counters.Hung, "the handler needs less than MaxLeaseAge")
		require.EqualValues(t, 2, counters.Acked)
		var attempts []wakebelltype.Attempt
		stacktest.Eventually(t, func() bool {
			attempts = nil
			for a, err := range sys.Client().History(t.Context(), "t", wakebelltype.HistoryFilter{}, wakebelltype.Page{}) {
				require.NoError(t, err)
				attempts = append(attempts, a)
			}
			return len(attempts) == 2
		})
		for _, a := range attempts {
			require.Equal(t, 6*time.Second, a.Took.Round(time.Second))
			require.WithinDuration(t, began.Add(8*time.Second), a.Started, 500*time.Millisecond)
		}
	})
}
