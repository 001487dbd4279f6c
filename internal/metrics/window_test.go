package metrics

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The oldest handler that runs is reported, in any order of the ends.
func TestOldestRunningHandlerIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCollector(0)
		defer c.Observe(still())()
		h, oldest := c.Handler("a", false), func() map[string]float64 { return c.values(t, "wakebell.handler.oldest.age", destination) }
		require.Empty(t, oldest())
		var runs []*Run
		for range 3 {
			runs = append(runs, h.Began(time.Now()))
			<-time.After(time.Minute)
		}
		require.Equal(t, map[string]float64{"a": 180}, oldest())
		h.Ended(runs[1], Handled)
		require.Equal(t, map[string]float64{"a": 180}, oldest())
		h.Ended(runs[0], Crashed)
		require.Equal(t, map[string]float64{"a": 60}, oldest())
		again := h.Began(time.Now())
		h.Ended(runs[2], Handled)
		require.Empty(t, oldest(), "it began now")
		h.Ended(again, Handled)
		require.Empty(t, oldest())
	})
}

// The 99th percentile is near the truth between bounds, one timer of 1970 does not change it,
// and it is forgotten.
func TestPercentilesOfTopicsAreOfTheLastMinutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCollector(0)
		defer c.Observe(still())()
		h, p99 := c.Handler("a", false), func() map[string]float64 {
			return c.values(t, "wakebell.delivery.lateness.p99", destination)
		}
		require.Empty(t, p99())
		for range 1000 {
			h.Late(19*time.Minute, time.Now())
		}
		h.Late(56*365*24*time.Hour, time.Now())
		require.InDelta(t, 19*60, p99()["a"], 2*60)
		<-time.After(windowFor)
		require.InDelta(t, 19*60, p99()["a"], 2*60)
		<-time.After(windowFor)
		require.Empty(t, p99())
	})
}
