package delivery_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
)

// handling runs fn once as the handler of a new timer and returns its result.
func handling(t *testing.T, fn func(context.Context, *wakebell.Client, wakebell.Timer[string]) error, opts ...wakebell.HandlerOption) error {
	t.Helper()
	topic := wakebell.NewTopic[string](redistest.Name(t))
	done := make(chan error, 10)
	c, err := wakebell.NewClient(conntest.New(t, redistest.Shared(t), connection.Config{}))
	require.NoError(t, err)
	sys := stacktest.Start(t, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, func(ctx context.Context, timer wakebell.Timer[string]) error {
			done <- fn(ctx, c, timer)
			return errors.New("what is returned after Settle does not count")
		}, opts...),
	}})
	_, err = topic.Schedule(t.Context(), c, "x", wakebell.ID("a"))
	require.NoError(t, err)
	result := <-done
	require.NoError(t, sys.Stop())
	require.Zero(t, sys.Counters()[topic.Name()].Lost)
	return result
}

func TestSettleAcksWhileHandlerRuns(t *testing.T) {
	t.Parallel()
	require.NoError(t, handling(t, func(ctx context.Context, c *wakebell.Client, timer wakebell.Timer[string]) error {
		if err := timer.Settle(ctx, nil); err != nil {
			return err
		}
		_, _, err := c.Get(ctx, timer.Topic, timer.ID)
		require.ErrorIs(t, err, wakebell.ErrNotFound)
		require.ErrorIs(t, timer.Settle(ctx, nil), wakebell.ErrSettled)
		require.ErrorIs(t, timer.Extend(ctx), wakebell.ErrSettled)
		require.NoError(t, ctx.Err())
		return nil
	}))
}

func TestSettleRetriesWhileHandlerRuns(t *testing.T) {
	t.Parallel()
	require.NoError(t, handling(t, func(ctx context.Context, c *wakebell.Client, timer wakebell.Timer[string]) error {
		if err := timer.Settle(ctx, wakebell.RetryIn(time.Hour)); err != nil {
			return err
		}
		info, _, err := c.Get(ctx, timer.Topic, timer.ID)
		require.NoError(t, err)
		require.Equal(t, wakebell.StateRetrying, info.State)
		require.Equal(t, 1, info.Failures)
		return nil
	}))
}

func TestSettleAndExtendReportSupersedingSchedule(t *testing.T) {
	t.Parallel()
	require.NoError(t, handling(t, func(ctx context.Context, c *wakebell.Client, timer wakebell.Timer[string]) error {
		_, err := wakebell.NewTopic[string](timer.Topic).Schedule(ctx, c, "new", wakebell.ID(timer.ID), wakebell.In(time.Hour))
		require.NoError(t, err)
		require.ErrorIs(t, timer.Extend(ctx), wakebell.ErrSuperseded)
		require.ErrorIs(t, timer.Settle(ctx, nil), wakebell.ErrSuperseded)
		info, _, err := c.Get(ctx, timer.Topic, timer.ID)
		require.NoError(t, err)
		require.Equal(t, wakebell.StatePending, info.State)
		return nil
	}))
}

func TestSettleReportsCancel(t *testing.T) {
	t.Parallel()
	require.NoError(t, handling(t, func(ctx context.Context, c *wakebell.Client, timer wakebell.Timer[string]) error {
		_, err := c.Cancel(ctx, timer.Topic, timer.ID)
		require.NoError(t, err)
		require.ErrorIs(t, timer.Settle(context.WithoutCancel(ctx), nil), wakebell.ErrCancelled)
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), wakebell.ErrCancelled)
		return nil
	}))
}

func TestExtendExtendsLease(t *testing.T) {
	t.Parallel()
	require.NoError(t, handling(t, func(ctx context.Context, c *wakebell.Client, timer wakebell.Timer[string]) error {
		before, _, err := c.Get(ctx, timer.Topic, timer.ID)
		require.NoError(t, err)
		require.NoError(t, timer.Extend(ctx))
		after, _, err := c.Get(ctx, timer.Topic, timer.ID)
		require.NoError(t, err)
		require.True(t, after.Due.After(before.Due), "the lease ends later")
		return timer.Settle(ctx, nil)
	}))
}

func TestTimerThatWasNotDeliveredCannotBeSettled(t *testing.T) {
	t.Parallel()
	var timer wakebell.Timer[string]
	require.ErrorIs(t, timer.Settle(t.Context(), nil), wakebell.ErrInvalid)
	require.ErrorIs(t, timer.Extend(t.Context()), wakebell.ErrInvalid)
}
