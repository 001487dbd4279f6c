package wakebelltest_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// waited is the answer of a Wait.
type waited struct {
	wakebell.Ending
	err error
}

// wait calls Wait in the background.
func wait(t *testing.T, w *wakebelltest.World, id string) <-chan waited {
	t.Helper()
	answer := make(chan waited, 1)
	go func() {
		e, err := w.Client().Wait(t.Context(), "jobs", id)
		answer <- waited{e, err}
	}()
	return answer
}

func TestWaitReturnsResultOfAckedAttempt(t *testing.T) {
	t.Parallel()
	var between wakebell.Report
	var w *wakebelltest.World
	store := &blobs{bodies: map[string][]byte{}}
	cfg := handles(wakebell.HandleResult(jobs, func(ctx context.Context, timer wakebell.Timer[job]) (string, error) {
		if timer.Attempt == 1 {
			if err := timer.Result(ctx, "first"); err != nil {
				return "", wakebell.Reject(err)
			}
			return "", errors.New("interrupted")
		}
		between, _ = w.Client().Report(ctx, "jobs", "a")
		return "second " + strings.Repeat("x", 8000), nil
	}))
	conn := connection.Config{Payloads: encrypting(t, store)}
	wakebelltest.RunWith(t, conn, wakebell.Config{}, func(t *testing.T, world *wakebelltest.World) {
		w = world
		w.Start(cfg)
		_, err := jobs.Schedule(t.Context(), w.Client(), job{}, wakebell.ID("a"), wakebell.In(time.Hour))
		require.NoError(t, err)
		answer := wait(t, w, "a")
		w.Advance(2 * time.Hour)
		e := <-answer
		require.NoError(t, e.err)
		require.Equal(t, wakebelltype.EndDone, e.End)
		require.Nil(t, between.Result, "the result of an attempt that failed is removed")
		require.Equal(t, 2, e.Result.Attempt)
		value, err := wakebell.ReadResult[string](t.Context(), w.Client(), "jobs", "a", e.Result)
		require.NoError(t, err)
		require.Equal(t, "second "+strings.Repeat("x", 8000), value)

		e.Ending, err = w.Client().Wait(t.Context(), "jobs", "a")
		require.NoError(t, err)
		require.Equal(t, wakebelltype.EndDone, e.End, "the timer has ended before")
		require.NotNil(t, e.Result)
		w.Advance(time.Hour)
		report, err := w.Client().Report(t.Context(), "jobs", "a")
		require.NoError(t, err)
		require.Zero(t, report, "it is kept for an hour")
	})
}

func TestResultOfRefusedAckIsRemoved(t *testing.T) {
	t.Parallel()
	var w *wakebelltest.World
	cfg := handles(wakebell.Handle(jobs, func(ctx context.Context, timer wakebell.Timer[job]) error {
		ctx = context.WithoutCancel(ctx)
		if err := timer.Result(ctx, "done"); err != nil {
			return wakebell.Reject(err)
		}
		_, err := jobs.Cancel(ctx, w.Client(), "a")
		return err
	}))
	wakebelltest.Run(t, wakebell.Config{}, func(t *testing.T, world *wakebelltest.World) {
		w = world
		w.Start(cfg)
		_, err := jobs.Schedule(t.Context(), w.Client(), job{}, wakebell.ID("a"), wakebell.In(time.Hour))
		require.NoError(t, err)
		answer := wait(t, w, "a")
		w.Advance(2 * time.Hour)
		e := <-answer
		require.NoError(t, e.err)
		require.Equal(t, wakebelltype.EndCancelled, e.End)
		require.Nil(t, e.Result)
		report, err := w.Client().Report(t.Context(), "jobs", "a")
		require.NoError(t, err)
		require.Nil(t, report.Result)
	})
}

func TestResultOfCrashedHandlerIsRemoved(t *testing.T) {
	t.Parallel()
	cfg := handles(wakebell.Handle(jobs, func(ctx context.Context, timer wakebell.Timer[job]) error {
		if err := timer.Result(ctx, "done"); err != nil {
			return wakebell.Reject(err)
		}
		panic("the handler crashes")
	}))
	quiet := connection.Config{Logger: slog.New(slog.DiscardHandler)}
	wakebelltest.RunWith(t, quiet, cfg, func(t *testing.T, w *wakebelltest.World) {
		_, err := jobs.Schedule(t.Context(), w.Client(), job{}, wakebell.ID("a"))
		require.NoError(t, err)
		w.Advance(time.Second)
		_, err = jobs.Cancel(t.Context(), w.Client(), "a")
		require.NoError(t, err)
		e, err := w.Client().Wait(t.Context(), "jobs", "a")
		require.NoError(t, err)
		require.Equal(t, wakebelltype.EndMissing, e.End, "it was not done")
	})
}

func TestWaitSaysHowTimerEnded(t *testing.T) {
	t.Parallel()
	cfg := handles(wakebell.HandleResult(jobs, func(_ context.Context, timer wakebell.Timer[job]) (string, error) {
		if timer.ID == "dead" {
			return "", wakebell.Reject(errors.New("no such account"))
		}
		return strings.Repeat("x", 5000), nil
	}))
	wakebelltest.Run(t, cfg, func(t *testing.T, w *wakebelltest.World) {
		for _, id := range []string{"dead", "large", "cancelled"} {
			_, err := jobs.Schedule(t.Context(), w.Client(), job{}, wakebell.ID(id), wakebell.In(time.Hour))
			require.NoError(t, err)
		}
		dead, large, cancelled, missing := wait(t, w, "dead"), wait(t, w, "large"), wait(t, w, "cancelled"), wait(t, w, "missing")
		w.Advance(10 * time.Minute)
		e := <-missing
		require.NoError(t, e.err)
		require.Equal(t, wakebelltype.EndMissing, e.End)
		_, err := jobs.Cancel(t.Context(), w.Client(), "cancelled")
		require.NoError(t, err)
		w.Advance(10 * time.Second)
		e = <-cancelled
		require.NoError(t, e.err)
		require.Equal(t, wakebelltype.EndCancelled, e.End)
		w.Advance(time.Hour)
		e = <-dead
		require.NoError(t, e.err)
		require.Equal(t, wakebell.Ending{End: wakebelltype.EndDead, Reason: "no such account"}, e.Ending)
		e = <-large
		require.NoError(t, e.err)
		require.Equal(t, wakebelltype.EndDead, e.End)
		require.Contains(t, e.Reason, "the limit is 4096")
	})
}
