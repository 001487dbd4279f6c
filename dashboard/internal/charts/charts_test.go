package charts

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/forecast"
	"github.com/wakebell/wakebell/wakebelltype"
)

var began = time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)

func counts(step time.Duration, n int, of func(i int) wakebelltype.ThroughputCounts) wakebelltype.Throughput {
	t := wakebelltype.Throughput{Step: step}
	for i := range n {
		c := of(i)
		c.At = began.Add(time.Duration(i) * step)
		t.Points = append(t.Points, c)
	}
	return t
}

// Each range has its text, at most MaxBars bars with a title, and axes.
func TestChartsHaveAxesAndValues(t *testing.T) {
	t.Parallel()
	for _, r := range Ranges {
		step := time.Minute
		if r.Span > 24*time.Hour {
			step = 24 * time.Hour
		}
		past := NewPast(counts(step, int(r.Span/step), func(i int) wakebelltype.ThroughputCounts {
			return wakebelltype.ThroughputCounts{Handled: int64(i), Dead: 1}
		}))
		require.Contains(t, past.Label, "Last "+r.Text+": ")
		require.LessOrEqual(t, len(past.Columns), MaxBars)
		require.Contains(t, past.Columns[0].Title, "Nov 27")
		require.Contains(t, past.Columns[0].Title, " dead")
		require.Equal(t, "now", past.Axes.Right)
		require.True(t, strings.HasSuffix(past.Axes.Left, " ago"), past.Axes.Left)
		require.NotEmpty(t, past.Axes.Top)
	}
	require.Equal(t, Default, RangeOf("another"))
	require.Equal(t, time.Hour, RangeOf("1h").Span)
	empty := NewPast(wakebelltype.Throughput{})
	require.Empty(t, empty.Parts)
	require.Equal(t, "6 hours", empty.Range)
}

// One timer of 1970 changes neither the median nor the percentile, and so not the scale.
func TestLatenessIsShownWithoutOutliers(t *testing.T) {
	t.Parallel()
	late := NewLate(counts(time.Minute, 360, func(i int) (c wakebelltype.ThroughputCounts) {
		if i%2 == 1 {
			return c // nothing began
		}
		c.Started, c.MaxLateness = 1000, 20*time.Millisecond
		c.Latenesses.Count(15*time.Millisecond, 999)
		c.Latenesses.Count(20*time.Millisecond, 1)
		if i == 100 {
			c.Started, c.MaxLateness = 1001, 56*365*24*time.Hour
			c.Latenesses.Count(c.MaxLateness, 1)
		}
		return c
	}))
	require.Less(t, late.P99, 25*time.Millisecond)
	require.Equal(t, 56*365*24*time.Hour, late.Worst, "it is said in words")
	require.Equal(t, "19 ms", late.Axes.Top)
	require.Contains(t, late.Columns[0].Title, "10:00–10:05 UTC: 3,000 began, median")
}

func TestForecastHasAxesAndValues(t *testing.T) {
	t.Parallel()
	plot, runs := NewAhead(forecast.Forecast{Total: 7, Bars: []forecast.Bar{{At: began, Timers: 4, Runs: 1}, {At: began.Add(12 * time.Hour), Timers: 2}}})
	require.EqualValues(t, 1, runs)
	require.Equal(t, Axes{"5", "2", "now", "in 12 h", "in 24 h"}, plot.Axes)
	require.Equal(t, "Nov 27 10:00–22:00 UTC: 4 timers, 1 run of recurring schedules", plot.Columns[0].Title)
	none, _ := NewAhead(forecast.Forecast{})
	require.Empty(t, none.Parts)
}
