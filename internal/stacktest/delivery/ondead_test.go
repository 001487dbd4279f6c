package delivery_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// OnDead receives the same dead letter as the stream has, for every reason. Its Entry
// can be redriven.
func TestOnDeadReceivesEveryDeadLetter(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		topic := wakebell.NewTopic[string]("t")
		var crashes atomic.Int64
		sys, c, received := stacktest.WithOnDead(t, rdb, wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[string]) error {
			switch timer.ID {
			case "rejected":
				return wakebell.Reject(errors.New("bad card"))
			case "crashes":
				crashes.Add(1)
				panic("as the test wants it")
			}
			return errors.New("bank is closed")
		}, wakebell.MaxAttempts(2), wakebell.RetryBackoff(time.Millisecond, time.Millisecond), wakebell.LeaseTTL(100*time.Millisecond)))

		same := func(id string, want wakebell.DeadLetter) {
			t.Helper()
			got := stacktest.Receive(t, received)
			letter, err := c.DeadLetter(t.Context(), topic.Name(), got.Entry)
			require.NoError(t, err)
			require.Equal(t, letter, got)
			require.Equal(t, id, got.ID)
			require.Equal(t, want.Attempts, got.Attempts)
			require.Equal(t, want.Failures, got.Failures)
			require.Contains(t, got.Reason, want.Reason)
			require.Equal(t, "body of "+id, string(got.Content.Body))
		}
		schedule := func(id string) {
			t.Helper()
			_, err := topic.Schedule(t.Context(), c, "body of "+id, wakebell.ID(id), wakebell.Header("k", "v"))
			require.NoError(t, err)
		}
		schedule("rejected")
		same("rejected", wakebell.DeadLetter{Reason: "bad card", Attempts: 1})
		schedule("fails")
		same("fails", wakebell.DeadLetter{Reason: "bank is closed", Attempts: 2, Failures: 2})
		schedule("crashes")
		same("crashes", wakebell.DeadLetter{Reason: "panic: as the test wants it at delivery/ondead_test.go:", Attempts: 2, Failures: 2})
		require.EqualValues(t, 2, crashes.Load())
		raw := wakebell.NewTopic[[]byte](topic.Name())
		_, err := raw.Schedule(t.Context(), c, []byte("body of unreadable"), wakebell.ID("unreadable"), wakebell.ContentType("image/png"))
		require.NoError(t, err)
		same("unreadable", wakebell.DeadLetter{Reason: "image/png", Attempts: 1})

		require.NoError(t, sys.Stop())
		counters := sys.Counters()[topic.Name()]
		require.EqualValues(t, 4, counters.HookCalls)
		require.EqualValues(t, 4, counters.DeadLettered)
		require.Zero(t, counters.HookSkipped)
		require.Empty(t, received)
	})
}

func TestOnDeadReceivesNoDiscardedTimer(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string](redistest.Name(t))
	_, c, received := stacktest.WithOnDead(t, redistest.Shared(t), wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error {
		return wakebell.Reject(errors.New("no"))
	}, wakebell.DiscardRejected()))
	_, err := topic.Schedule(t.Context(), c, "x")
	require.NoError(t, err)
	stacktest.Eventually(t, func() bool { return stacktest.Count(t, c, topic.Name()) == 0 })
	require.Empty(t, letters(t, c, topic.Name(), wakebelltype.DeadFilter{}))
	require.Empty(t, received)
}

// Stop waits for OnDead until DrainTimeout. A hook that hangs delays it no longer.
func TestStopWaitsForOnDead(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string]("t")
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		var received, ended atomic.Int64
		sys := stacktest.Launch(t, stacktest.Build(t, rdb, wakebell.Config{
			DrainTimeout: 10 * time.Second,
			Handlers: []wakebell.Handler{wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error {
				return wakebell.Reject(errors.New("no"))
			})},
			OnDead: func(ctx context.Context, _ wakebell.DeadLetter) {
				received.Add(1)
				select {
				case <-time.After(6 * time.Second):
				case <-ctx.Done():
					require.ErrorIs(t, context.Cause(ctx), wakebell.ErrDraining)
					ended.Add(1)
				}
			},
		}))
		_, err := sys.Client().Schedule(t.Context(), topic.Draft("a"), topic.Draft("b"), topic.Draft("c"))
		require.NoError(t, err)
		<-time.After(time.Second)
		began := time.Now()
		require.NoError(t, sys.Stop())
		require.Equal(t, 10*time.Second, time.Since(began).Round(100*time.Millisecond))
		require.EqualValues(t, 2, received.Load())
		require.EqualValues(t, 1, ended.Load())
		require.EqualValues(t, 1, sys.Counters()["t"].HookSkipped)
		require.Len(t, letters(t, sys.Client(), "t", wakebelltype.DeadFilter{}), 3)
	})
}
