package shards

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestCountDueCountsAllShards counts timers at the ends of steps, in more steps than one round
// trip asks for, also while they move to other shards.
func TestCountDueCountsAllShards(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 3)
	const steps = 1200
	from := time.Now().Add(time.Hour).Truncate(time.Second)
	want := make([]int64, steps)
	for i, at := range []time.Duration{
		-time.Microsecond, 0, time.Second - time.Microsecond, time.Second, 499 * time.Second, 500 * time.Second,
		steps*time.Second - time.Microsecond, steps * time.Second,
	} {
		for j := range 3 {
			f.schedule(t, timers.Entry{ID: fmt.Sprint(i, " ", j), Payload: []byte("x"), At: from.Add(at)})
			if at >= 0 && at < steps*time.Second {
				want[at/time.Second]++
			}
		}
	}
	counted := func() []int64 {
		t.Helper()
		counts, err := f.CountDue(t.Context(), f.topic, from, time.Second, steps)
		require.NoError(t, err)
		return counts
	}
	require.Equal(t, want, counted())
	f.moveAll(t, f.startMoving(t, 2))
	require.Equal(t, want, counted())

	all, err := f.CountDue(t.Context(), f.topic, time.Unix(0, 0), 100*365*24*time.Hour, 1)
	require.NoError(t, err)
	require.Equal(t, []int64{24}, all)
	none, err := f.CountDue(t.Context(), f.topic+" empty", from, time.Hour, 2)
	require.NoError(t, err)
	require.Equal(t, []int64{0, 0}, none)
}

// TestCountDueLeavesOutParkedTimers has timers that wait for their key: they have no instant.
func TestCountDueLeavesOutParkedTimers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
	f.schedule(t, ofKey("k", 3)...)
	require.NotNil(t, f.serial().one(t, f.topic)) // it runs, and counts when its lease expires
	counts, err := f.CountDue(t.Context(), f.topic, time.Now(), 24*time.Hour, 1)
	require.NoError(t, err)
	require.Equal(t, []int64{1}, counts)
}

func TestCountDueRefusesArguments(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
	for name, call := range map[string]struct {
		topic string
		step  time.Duration
		n     int
	}{
		"topic": {"", time.Second, 1}, "step": {f.topic, time.Microsecond, 1},
		"n": {f.topic, time.Second, 0}, "1500": {f.topic, time.Second, timers.MostDueSteps + 1},
	} {
		_, err := f.CountDue(t.Context(), call.topic, time.Now(), call.step, call.n)
		require.ErrorIs(t, err, wakebelltype.ErrInvalid, name)
		require.ErrorContains(t, err, name)
	}
	k := f.timers.Keys().Of(f.topic)
	require.NoError(t, f.timers.RDB.Set(t.Context(), k.Timeline, "not a timeline", 0).Err())
	_, err := f.CountDue(t.Context(), f.topic, time.Now(), time.Second, 1)
	require.ErrorContains(t, err, "WRONGTYPE")
}
