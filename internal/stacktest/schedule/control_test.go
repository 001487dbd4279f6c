package schedule_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestOverridesThroughClient(t *testing.T) {
	t.Parallel()
	c, rdb, name := stacktest.NewClient(t)
	ctx := t.Context()
	paused, err := c.Pause(ctx, name, "ops", "bank is down")
	require.NoError(t, err)
	require.True(t, paused.Paused)
	set := wakebelltype.Settings{MaxConcurrent: 2, LeaseTTL: time.Minute}
	tuned, err := c.Retune(ctx, name, set)
	require.NoError(t, err)
	require.Equal(t, set, tuned.Settings)
	got, err := c.Control(ctx, name)
	require.NoError(t, err)
	require.Equal(t, wakebelltype.Control{
		Paused: true, PausedAt: paused.PausedAt, PausedBy: "ops", Reason: "bank is down", Settings: set,
	}, got)
	require.EqualValues(t, 1, rdb.Exists(ctx, "timers_control:"+name).Val())
	got, err = c.Resume(ctx, name)
	require.NoError(t, err)
	require.Equal(t, wakebelltype.Control{Settings: set}, got)

	_, err = c.Retune(ctx, name, wakebelltype.Settings{MaxConcurrent: -1})
	require.ErrorIs(t, err, wakebell.ErrInvalid)
	_, err = c.Pause(ctx, "", "", "")
	require.ErrorIs(t, err, wakebell.ErrInvalid)
}

func TestStatsThroughClient(t *testing.T) {
	t.Parallel()
	c, _, name := stacktest.NewClient(t)
	topic := wakebell.NewTopic[string](name)
	_, err := c.Schedule(t.Context(), topic.Draft("a"), topic.Draft("b", wakebell.In(time.Hour)))
	require.NoError(t, err)
	_, err = c.Pause(t.Context(), name, "ops", "")
	require.NoError(t, err)
	st, err := c.Stats(t.Context(), name)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), st.OldestDue, time.Minute)
	require.Equal(t, wakebelltype.Stats{
		Total: 2, Pending: 1, Due: 1, OldestDue: st.OldestDue, Lag: st.Lag, Paused: true, PausedAt: st.PausedAt,
	}, st)
	_, err = c.Stats(t.Context(), "")
	require.ErrorIs(t, err, wakebell.ErrInvalid)
}
