package wakebelltype_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/wakebelltype"
)

// A quantile is near the truth, and one timer of 1970 changes the longest only.
func TestQuantilesOfLatenessIgnoreOutliers(t *testing.T) {
	t.Parallel()
	const ancient = 56 * 365 * 24 * time.Hour
	c := wakebelltype.ThroughputCounts{Started: 1001, Lateness: 1000*19*time.Minute + ancient, MaxLateness: ancient}
	c.Latenesses.Count(19*time.Minute, 1000)
	c.Latenesses.Count(ancient, 1)
	require.Greater(t, c.MeanLateness(), 400*time.Hour, "why the mean says nothing")
	for _, q := range []float64{.5, .99} {
		late := c.LatenessQuantile(q)
		require.Greater(t, late, 10*time.Minute)
		require.LessOrEqual(t, late, 20*time.Minute)
	}
	require.Equal(t, 24*time.Hour, c.LatenessQuantile(1), "what is above all bounds")
}

func TestQuantilesOfLatenessWithoutCounts(t *testing.T) {
	t.Parallel()
	require.Zero(t, wakebelltype.ThroughputCounts{}.LatenessQuantile(.5))
	old := wakebelltype.ThroughputCounts{Started: 2, Lateness: 4 * time.Second, MaxLateness: 3 * time.Second}
	require.Equal(t, 2*time.Second, old.LatenessQuantile(.99), "of an earlier version")
	short := wakebelltype.ThroughputCounts{Started: 1, MaxLateness: 1100 * time.Millisecond}
	short.Latenesses.Count(1100*time.Millisecond, 1)
	require.Equal(t, 1100*time.Millisecond, short.LatenessQuantile(.99), "never above the longest")
}

// Every lateness is counted in the bucket of the first bound that it does not exceed.
func TestLatenessesAreCountedByBounds(t *testing.T) {
	t.Parallel()
	var all wakebelltype.Latenesses
	for _, late := range []time.Duration{0, time.Millisecond, time.Millisecond + 1, 24 * time.Hour, 24*time.Hour + 1} {
		all.Count(late, 1)
	}
	require.Equal(t, wakebelltype.Latenesses{2, 1, 24: 1, 25: 1}, all)
	require.Equal(t, wakebelltype.Latenesses{4, 2, 24: 2, 25: 2}, all.Plus(all))
	require.Equal(t, wakebelltype.Latenesses{}, all.Minus(all))
}
