package wakebelltest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/wakebelltest"
)

// takes returns a node whose handler takes that long, or until its context ends.
func takes(d time.Duration, opts ...wakebell.HandlerOption) wakebell.Config {
	return handling(func(ctx context.Context, _ wakebell.Timer[string]) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}, opts...)
}

func TestWorldSurvivesCrash(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, takes(10*time.Second), func(t *testing.T, w *wakebelltest.World) {
		schedule(t, w, "a", "x")
		schedule(t, w, "b", "x", wakebell.In(20*time.Second))
		w.Advance(5 * time.Second)
		w.Crash()
		require.Equal(t, []string{"a 1 crashed"}, outcomes(w.Delivered("notes")))
		w.Advance(time.Hour)
		require.Len(t, w.Delivered("notes"), 1, "there is no node")
		require.Len(t, w.Upcoming("notes"), 2)
		require.ErrorIs(t, w.RequireDelivered("notes", "a").Err, wakebell.ErrStopped)

		w.Restart()
		w.Advance(time.Minute)
		require.Equal(t, []string{"a 1 crashed", "b 1 acked", "a 2 acked"}, outcomes(w.Delivered("notes")))
		require.Empty(t, w.Upcoming("notes"))
	})
}

func TestCrashLeavesLease(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, takes(10*time.Second, wakebell.LeaseTTL(time.Minute)), func(t *testing.T, w *wakebelltest.World) {
		schedule(t, w, "a", "x")
		w.Advance(5 * time.Second)
		w.Nodes()[0].Crash()
		w.Nodes()[0].Crash()
		w.Nodes()[0].Start()
		require.Equal(t, wakebell.StateRunning, w.RequireUpcoming("notes", "a").State)
		w.Advance(54 * time.Second)
		require.Equal(t, []string{"a 1 crashed"}, outcomes(w.Delivered("notes")))
		w.Advance(time.Second)
		require.Equal(t, []string{"a 1 crashed", "a 2 running"}, outcomes(w.Delivered("notes")))
	})
}

func TestRestartWaitsForRunningHandlers(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, takes(10*time.Second), func(t *testing.T, w *wakebelltest.World) {
		began := time.Now()
		schedule(t, w, "a", "x")
		w.Advance(0)
		before := w.Nodes()[0].System()
		w.Restart()
		require.NotSame(t, before, w.Nodes()[0].System())
		require.Equal(t, []string{"a 1 acked"}, outcomes(w.Delivered("notes")))
		require.Equal(t, 10*time.Second, time.Since(began))
	})
}

func TestStopReleasesTimersOfHandlersThatHang(t *testing.T) {
	t.Parallel()
	cfg := takes(time.Hour)
	cfg.DrainTimeout = time.Second
	wakebelltest.Run(t, cfg, func(t *testing.T, w *wakebelltest.World) {
		schedule(t, w, "a", "x")
		w.Advance(0)
		require.NoError(t, w.Nodes()[0].Stop())
		require.NoError(t, w.Nodes()[0].Stop())
		d := w.RequireDelivered("notes", "a")
		require.Equal(t, wakebelltest.Released, d.Outcome)
		require.ErrorIs(t, d.Err, wakebell.ErrDraining)
		require.Equal(t, wakebell.StatePending, w.RequireUpcoming("notes", "a").State)
	})
}

func TestSeveralNodesShareTimers(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, takes(time.Second, wakebell.MaxConcurrent(1)), func(t *testing.T, w *wakebelltest.World) {
		second := w.Start(takes(time.Second, wakebell.MaxConcurrent(1)))
		require.Len(t, w.Nodes(), 2)
		schedule(t, w, "a", "x", wakebell.In(time.Hour))
		schedule(t, w, "b", "x", wakebell.In(time.Hour))
		w.Advance(time.Hour)
		nodes := map[int]bool{}
		for _, d := range w.Delivered("notes") {
			nodes[d.Node] = true
		}
		require.Equal(t, map[int]bool{1: true, 2: true}, nodes)
		w.Nodes()[0].Crash()
		schedule(t, w, "c", "x", wakebell.In(time.Minute))
		w.Advance(2 * time.Minute)
		require.Equal(t, 2, w.RequireDelivered("notes", "c").Node)
		require.EqualValues(t, 3, second.System().Counters()["notes"].Acked)
	})
}

func TestTopicsAddedLaterAreRecorded(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, wakebell.Config{}, func(t *testing.T, w *wakebelltest.World) {
		n := w.StartWith(connection.Config{Prefix: "eu:"}, wakebell.Config{})
		require.NoError(t, n.System().Add(t.Context(), wakebell.Handle(notes, acks)))
		_, err := notes.Schedule(t.Context(), n.System().Client(), "x", wakebell.ID("a"), wakebell.In(time.Hour))
		require.NoError(t, err)
		w.Advance(time.Hour)
		require.Equal(t, []string{"a 1 acked"}, outcomes(w.Delivered("notes")))
	})
}

func TestPausedTopicDoesNotBlockAdvance(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, handling(acks), func(t *testing.T, w *wakebelltest.World) {
		_, err := w.Client().Pause(t.Context(), "notes", "me", "")
		require.NoError(t, err)
		w.Advance(0) // the node receives the override
		schedule(t, w, "a", "x")
		w.Advance(time.Hour)
		require.Empty(t, w.Delivered("notes"))
		_, err = w.Client().Resume(t.Context(), "notes")
		require.NoError(t, err)
		w.Advance(0)
		require.Equal(t, []string{"a 1 acked"}, outcomes(w.Delivered("notes")))
	})
}

// A System that the code under test creates delivers timers, but the world does not
// record them.
func TestSystemOfCodeUnderTest(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, wakebell.Config{}, func(t *testing.T, w *wakebelltest.World) {
		var at time.Time
		cfg := handling(func(context.Context, wakebell.Timer[string]) error { at = time.Now(); return nil })
		sys, err := wakebell.New(actor.NewActorSystem(), conntest.New(t, w.Redis(), connection.Config{}), cfg)
		require.NoError(t, err)
		require.NoError(t, sys.Start(t.Context()))
		t.Cleanup(func() { require.NoError(t, sys.Stop()) })
		began := time.Now()
		schedule(t, w, "a", "x", wakebell.In(time.Minute))
		w.Advance(time.Minute + time.Millisecond)
		require.WithinDuration(t, began.Add(time.Minute), at, time.Millisecond)
		require.Empty(t, w.Delivered("notes"))
		require.Empty(t, w.Upcoming("notes"))
	})
}

func TestFailuresListDeliveries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		said := failing(t, func(t *spy) {
			w := wakebelltest.New(t, handling(acks))
			_, err := notes.Schedule(t.Context(), w.Client(), "x", wakebell.ID("there"), wakebell.In(time.Hour))
			require.NoError(t, err)
			w.RequireDelivered("notes", "missing")
		})
		require.Contains(t, said, `timer "missing" of "notes" was not delivered`)
		require.Contains(t, said, `"there" of "notes", pending, due in 1h0m0s at 2000-01-01 01:00:00`)
	})
	synctest.Test(t, func(t *testing.T) {
		said := failing(t, func(t *spy) {
			w := wakebelltest.New(t, handling(acks))
			_, err := notes.Schedule(t.Context(), w.Client(), "x", wakebell.ID("gone"))
			require.NoError(t, err)
			w.Advance(0)
			w.RequireUpcoming("notes", "gone")
		})
		require.Contains(t, said, `there is no timer "gone" of "notes"`)
		require.Contains(t, said, `"gone" of "notes", attempt 1, delivered at 2000-01-01 00:00:00: acked`)
	})
}

func TestFailedWorldLogsItsHistory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		said := failing(t, func(t *spy) {
			w := wakebelltest.New(t, handling(func(context.Context, wakebell.Timer[string]) error {
				return wakebell.Reject(context.Canceled)
			}))
			_, err := notes.Schedule(t.Context(), w.Client(), "x", wakebell.ID("a"))
			require.NoError(t, err)
			w.Advance(time.Hour)
			t.Errorf("as the test wants it")
		})
		require.Contains(t, said, "the world at 2000-01-01 01:00:00, 1h0m0s after it began")
		require.Contains(t, said, `"a" of "notes", attempt 1, delivered at 2000-01-01 00:00:00: dead (context canceled)`)
		require.Contains(t, said, `"a", died at 2000-01-01 00:00:00: context canceled`)
	})
}

func TestMistakesFailTest(t *testing.T) {
	t.Parallel()
	require.Contains(t, failing(t, func(t *spy) { wakebelltest.New(t, wakebell.Config{}) }), "synctest bubble")
	for want, wrong := range map[string]func(*spy){
		"DrainTimeout": func(t *spy) {
			cfg := handling(acks)
			cfg.DrainTimeout = 1000 * time.Hour
			wakebelltest.New(t, cfg)
		},
		"PayloadLimit": func(t *spy) { wakebelltest.NewWith(t, connection.Config{PayloadLimit: -1}, wakebell.Config{}) },
		"time goes forward only": func(t *spy) {
			wakebelltest.New(t, wakebell.Config{}).Advance(-time.Second)
		},
		"not fit": func(t *spy) {
			wakebelltest.Body[int](t, wakebell.Content{Body: []byte("x"), ContentType: "text/plain"})
		},
	} {
		synctest.Test(t, func(t *testing.T) { require.Contains(t, failing(t, wrong), want) })
	}
}

// The failure names a handler that ignores its context.
func TestHandlerThatDoesNotReturnIsNamed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		said := failing(t, func(t *spy) {
			w := wakebelltest.New(t, handling(func(context.Context, wakebell.Timer[string]) error {
				<-free
				return nil
			}))
			_, err := notes.Schedule(t.Context(), w.Client(), "x", wakebell.ID("stuck"))
			require.NoError(t, err)
			w.Advance(0)
		})
		require.Contains(t, said, `the handler of "stuck" of "notes"`)
		close(free)
	})
}
