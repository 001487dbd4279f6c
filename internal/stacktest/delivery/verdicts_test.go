package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
)

// The error that a handler returns decides the verdict, also when it is wrapped.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	errClosed := errors.New("bank is closed")
	for name, is := range map[string]struct {
		verdict error
		state   wakebell.State // of the remaining timer or dead letter; empty: none
		reason  string         // of the dead letter or the failure
		dead    bool
	}{
		"nil":                  {nil, "", "", false},
		"error":                {errClosed, wakebell.StateRetrying, "bank is closed", false},
		"retry in":             {wakebell.RetryIn(time.Hour), wakebell.StateRetrying, "retry in 1h0m0s", false},
		"retry in, wrapped":    {fmt.Errorf("bank is closed: %w", wakebell.RetryIn(time.Hour)), wakebell.StateRetrying, "bank is closed: retry in 1h0m0s", false},
		"reject":               {wakebell.Reject(errClosed), "", "bank is closed", true},
		"reject nil":           {wakebell.Reject(nil), "", "rejected", true},
		"reject, wrapped":      {fmt.Errorf("account 7: %w", wakebell.Reject(errClosed)), "", "account 7: bank is closed", true},
		"reject, joined":       {errors.Join(errClosed, wakebell.Reject(nil)), "", "bank is closed\nrejected", true},
		"reject wins":          {fmt.Errorf("%w: %w", wakebell.RetryIn(1), wakebell.Reject(nil)), "", "retry in 1ns: rejected", true},
		"reject of a retry":    {wakebell.Reject(wakebell.RetryIn(1)), "", "retry in 1ns", true},
		"a context of its own": {context.DeadlineExceeded, wakebell.StateRetrying, "context deadline exceeded", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			topic := wakebell.NewTopic[string](redistest.Name(t))
			sys := stacktest.Serve(t, redistest.Shared(t), wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error {
				return is.verdict
			}, wakebell.RetryBackoff(time.Hour, time.Hour)))
			c := sys.Client()
			_, err := topic.Schedule(t.Context(), c, "body", wakebell.ID("x"), wakebell.Header("x-tenant", "acme"))
			require.NoError(t, err)
			stacktest.Eventually(t, func() bool {
				counters := sys.Counters()[topic.Name()]
				return counters.Acked+counters.Retried+counters.DeadLettered == 1
			})
			info, _, err := c.Get(t.Context(), topic.Name(), "x")
			if is.state == "" {
				require.ErrorIs(t, err, wakebell.ErrNotFound)
			} else {
				require.NoError(t, err)
				require.Equal(t, is.state, info.State)
				require.Equal(t, is.reason, info.LastError)
				require.Equal(t, 1, info.Attempts)
				require.Equal(t, 1, info.Failures)
				require.Greater(t, info.Due.Sub(info.Activation), 47*time.Minute)
			}
			letters := stacktest.DeadLetters(t, c, topic.Name())
			if !is.dead {
				require.Empty(t, letters)
				return
			}
			require.Len(t, letters, 1)
			require.Equal(t, "x", letters[0].ID)
			require.Equal(t, topic.Name(), letters[0].Topic)
			require.Equal(t, is.reason, letters[0].Reason)
			require.Equal(t, 1, letters[0].Attempts)
			require.Equal(t, "body", string(letters[0].Content.Body))
			require.Equal(t, map[string]string{"x-tenant": "acme"}, letters[0].Content.Headers.Map())
			require.False(t, letters[0].Died.Before(letters[0].Activation))
		})
	}
}

// Rejected timers can be discarded. Unreadable ones become dead letters nevertheless.
func TestDiscardRejected(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	topic := wakebell.NewTopic[int](redistest.Name(t))
	sys := stacktest.Serve(t, rdb, wakebell.Handle(topic, func(context.Context, wakebell.Timer[int]) error {
		return wakebell.Reject(errors.New("unwanted"))
	}, wakebell.DiscardRejected()))
	_, err := topic.Schedule(t.Context(), sys.Client(), 1)
	require.NoError(t, err)
	stacktest.Peer{Rdb: rdb, Topic: topic.Name()}.Publish(t, "unreadable", "no number", 1)
	stacktest.Eventually(t, func() bool { return stacktest.Count(t, sys.Client(), topic.Name()) == 0 })
	letters := stacktest.DeadLetters(t, sys.Client(), topic.Name())
	require.Len(t, letters, 1)
	require.Equal(t, "unreadable", letters[0].ID)
	require.Contains(t, letters[0].Reason, "body")
	stacktest.Eventually(t, func() bool { return sys.Counters()[topic.Name()].Discarded == 1 })
}

// A panic counts as a crash: the timer is delivered again when its lease expires.
func TestPanickedTimerIsRetriedAfterItsLease(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		topic := wakebell.NewTopic[string]("t")
		done := make(chan wakebell.Timer[string], 2)
		sys := stacktest.Serve(t, rdb, wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[string]) error {
			if timer.Body == "crash" && timer.Attempt == 1 {
				panic("on purpose")
			}
			done <- timer
			return nil
		}, wakebell.MaxConcurrent(1), wakebell.LeaseTTL(300*time.Millisecond)))
		_, err := topic.Schedule(t.Context(), sys.Client(), "crash")
		require.NoError(t, err)
		_, err = topic.Schedule(t.Context(), sys.Client(), "other")
		require.NoError(t, err)
		require.Equal(t, "other", stacktest.Receive(t, done).Body)
		timer := stacktest.Receive(t, done)
		require.Equal(t, 2, timer.Attempt)
		require.Equal(t, 1, timer.Failures)
		require.EqualValues(t, 1, sys.Counters()[topic.Name()].Crashed)
		require.Zero(t, sys.Counters()[topic.Name()].Retried)
	})
}

// The lease of a handler that hangs ends at the maximum lease age.
func TestMaxLeaseAge(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		topic := wakebell.NewTopic[string]("t")
		causes, free := make(chan error, 1), make(chan struct{})
		defer close(free)
		again := make(chan int, 1)
		sys := stacktest.Serve(t, rdb, wakebell.Handle(topic, func(ctx context.Context, timer wakebell.Timer[string]) error {
			if timer.Attempt > 1 {
				again <- timer.Failures
				return nil
			}
			<-ctx.Done()
			causes <- context.Cause(ctx)
			<-free // the handler does not return
			return nil
		}, wakebell.MaxConcurrent(1), wakebell.MaxLeaseAge(100*time.Millisecond), wakebell.RetryBackoff(time.Millisecond, time.Millisecond)))
		_, err := topic.Schedule(t.Context(), sys.Client(), "x")
		require.NoError(t, err)
		require.ErrorIs(t, stacktest.Receive(t, causes), wakebell.ErrLeaseTooOld)
		require.Equal(t, 1, stacktest.Receive(t, again))
	})
}
