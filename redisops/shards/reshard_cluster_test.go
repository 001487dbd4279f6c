package shards

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestTimersMoveWithEverythingOnCluster(t *testing.T) {
	t.Parallel()
	masters := redistest.Cluster(t)
	for _, counts := range [][2]int{{1, 4}, {4, 2}} {
		t.Run(fmt.Sprintf("%d to %d", counts[0], counts[1]), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, masters.Client(t), wakebelltype.Keys{HashTag: true}, counts[0])
			testMoving(t, f, counts[1])
		})
	}
}

// TestRunsAreNotPutAgainAfterTwoChanges notes runs of recurring schedules in a topic whose
// number of shards changes twice.
func TestRunsAreNotPutAgainAfterTwoChanges(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
	note := func(shard, name, run string) {
		require.NoError(t, f.timers.RDB.HSet(t.Context(), f.timers.Keys().Of(shard).Runs, name, run).Err())
	}
	put := func(name, incarnation string, run int64) bool {
		l, err := f.layouts.Of(t.Context(), f.topic)
		require.NoError(t, err)
		found, err := f.timers.RDB.HGet(t.Context(), f.timers.Keys().Of(l.Shard(f.topic, name, "")).Runs, name).Result()
		require.NoError(t, err)
		return found == fmt.Sprintf("%s %d", incarnation, run)
	}
	note(f.topic, "daily", "b 7")
	note(f.topic, "hourly", "a 9")
	change := func(n int) {
		f.startMoving(t, n)
		was, err := f.RunWasPut(t.Context(), f.topic, "daily", "daily@7", "b", 7)
		require.NoError(t, err)
		require.True(t, was)
		was, err = f.RunWasPut(t.Context(), f.topic, "daily", "daily@8", "b", 8)
		require.NoError(t, err)
		require.False(t, was)
		_, err = f.layouts.change(t.Context(), f.topic, func(l sharding.Layout) (sharding.Layout, error) {
			l.Since = time.Now().Add(-time.Minute).UnixMilli()
			return l, nil
		})
		require.NoError(t, err)
		l, err := f.Settle(t.Context(), f.topic)
		require.NoError(t, err)
		require.False(t, l.Moving)
		for _, name := range sharding.Names(f.topic, l.From) {
			left, err := f.timers.RDB.Exists(t.Context(), f.timers.Keys().Of(name).Runs).Result()
			require.NoError(t, err)
			require.Zero(t, left)
		}
	}
	change(4)
	require.True(t, put("daily", "b", 7))
	require.True(t, put("hourly", "a", 9))
	for _, name := range sharding.Names(f.topic, 4) {
		note(name, "hourly", "a 9")
	}
	note(sharding.Name(f.topic, 4, 2), "hourly", "a 12")
	change(2)
	require.True(t, put("daily", "b", 7))
	require.True(t, put("hourly", "a", 12), "the last run of all shards")
}
