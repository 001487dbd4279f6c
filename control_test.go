package wakebell_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
)

func TestOrdersThroughTheClient(t *testing.T) {
	t.Parallel()
	c, rdb, name := newClient(t)
	ctx := t.Context()
	paused, err := c.Pause(ctx, name, "ops", "bank is down")
	require.NoError(t, err)
	require.True(t, paused.Paused)
	set := wakebell.Settings{MaxConcurrent: 2, LeaseTTL: time.Minute}
	tuned, err := c.Retune(ctx, name, set)
	require.NoError(t, err)
	require.Equal(t, set, tuned.Settings)
	got, err := c.Control(ctx, name)
	require.NoError(t, err)
	require.Equal(t, wakebell.Control{
		Paused: true, PausedAt: paused.PausedAt, PausedBy: "ops", Reason: "bank is down", Settings: set,
	}, got)
	require.EqualValues(t, 1, rdb.Exists(ctx, "timers_control:"+name).Val())
	got, err = c.Resume(ctx, name)
	require.NoError(t, err)
	require.Equal(t, wakebell.Control{Settings: set}, got)

	_, err = c.Retune(ctx, name, wakebell.Settings{MaxConcurrent: -1})
	require.ErrorIs(t, err, wakebell.ErrInvalid)
	_, err = c.Pause(ctx, "", "", "")
	require.ErrorIs(t, err, wakebell.ErrInvalid)
}
