package attended_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/attended"
	"github.com/wakebell/wakebell/wakebelltype"
)

// minutes returns counts of the last minutes, the last of them the present one.
func minutes(now time.Time, points ...wakebelltype.ThroughputCounts) wakebelltype.Throughput {
	t := wakebelltype.Throughput{Step: time.Minute, Points: points}
	for i := range points {
		points[i].At = now.Truncate(time.Minute).Add(time.Duration(i-len(points)+1) * time.Minute)
	}
	return t
}

func TestProgressOfTopic(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 30, 0, time.UTC)
	since := func(d time.Duration) wakebelltype.Overview {
		return wakebelltype.Overview{Nodes: 1, Stats: wakebelltype.Stats{Due: 7, Leased: 5, Lag: d, OldestDue: now.Add(-d)}}
	}
	parked := since(0)
	parked.Stats.Due, parked.Stats.Parked = 0, 9
	paused, empty, alone, open := since(time.Hour), since(0), since(time.Hour), since(time.Hour)
	paused.Stats.Paused, empty.Stats.Due, alone.Nodes = true, 0, 0
	open.Reports = []wakebelltype.NodeReport{{Node: "n1", State: wakebelltype.NodeState{Breaker: "open", BreakerReason: "refused"}}}
	running := func(ages ...time.Duration) wakebelltype.Overview {
		o := since(3 * time.Minute)
		o.Stats.Leased = 2
		o.Reports = []wakebelltype.NodeReport{{Node: "n1"}}
		for i, age := range ages {
			run := wakebelltype.LongRun{ID: fmt.Sprint("x", i), Since: now.Add(-age)}
			o.Reports[0].State.Longest = append(o.Reports[0].State.Longest, run)
		}
		return o
	}
	for name, c := range map[string]struct {
		o     wakebelltype.Overview
		grade wakebelltype.Grade
		says  string
	}{
		"just due":       {since(attended.Limit), wakebelltype.GradeGood, "7 timers are due, the first for 1m0s"},
		"paused":         {paused, wakebelltype.GradeGood, "paused; 7 timers"},
		"empty":          {empty, wakebelltype.GradeGood, "0 timers are due"},
		"parked":         {parked, wakebelltype.GradeGood, "0 timers are due; 9 wait for their keys"},
		"no node":        {alone, wakebelltype.GradeGood, "7 timers are due, the first for 1h0m0s"},
		"open breaker":   {open, wakebelltype.GradeWarn, "the circuit breaker of n1 is open: refused"},
		"stuck":          {running(time.Hour, 2*time.Minute), wakebelltype.GradeWarn, "stuck: 7 timers are due, the first for 3m0s, and 2 handlers run, the first, of x0 on n1, since 2026-03-01T11:00:30Z"},
		"one stuck":      {running(time.Hour), wakebelltype.GradeWarn, "late: 7 timers are due, the first for 3m0s; 2 run"},
		"one just begun": {running(time.Hour, time.Minute), wakebelltype.GradeWarn, "late"},
		"no reports":     {since(time.Hour), wakebelltype.GradeWarn, "late"},
	} {
		v := attended.Progress(c.o)
		require.Equal(t, c.grade, v.Grade, "%s: %s", name, v.Found)
		require.Contains(t, v.Found, c.says, name)
		require.Equal(t, v.Grade != wakebelltype.GradeGood, v.Do != "", name)
	}
}

func TestDeadLettersThatGrow(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 30, 0, time.UTC)
	v := attended.Dead(1000, minutes(now, wakebelltype.ThroughputCounts{Dead: 2}, wakebelltype.ThroughputCounts{Dead: 3}))
	require.Equal(t, attended.Verdict{Grade: wakebelltype.GradeGood, Found: "1000 dead letters, 5 of the last 30 min"}, v)
	v = attended.Dead(1000, minutes(now, wakebelltype.ThroughputCounts{Dead: 6}))
	require.Equal(t, wakebelltype.GradeWarn, v.Grade)
	require.Contains(t, v.Found, "6 of the last 30 min")
}

func TestNodesThatDiffer(t *testing.T) {
	t.Parallel()
	node := func(name, version string, concurrent int) wakebelltype.NodeReport {
		return wakebelltype.NodeReport{Node: name, State: wakebelltype.NodeState{Version: version, Started: time.Unix(1, 0), Options: wakebelltype.Settings{MaxConcurrent: concurrent}}}
	}
	a, b, old := node("a", "v0.1", 5), node("b", "v0.2", 8), wakebelltype.NodeReport{Node: "c"}
	v := attended.Settings([]wakebelltype.NodeReport{a, b, old}, wakebelltype.Settings{})
	require.Equal(t, wakebelltype.GradeWarn, v.Grade)
	require.Equal(t, "differ: max_concurrent 5 (1 nodes), 8 (1 nodes)", v.Found)
	v = attended.Settings([]wakebelltype.NodeReport{a, b}, wakebelltype.Settings{MaxConcurrent: 2})
	require.Equal(t, wakebelltype.GradeGood, v.Grade, "an override makes it the same")
	require.Equal(t, wakebelltype.GradeGood, attended.Settings([]wakebelltype.NodeReport{a, old}, wakebelltype.Settings{}).Grade)

	v = attended.Versions([][]wakebelltype.NodeReport{{a, old}, {a, b}})
	require.Equal(t, wakebelltype.GradeWarn, v.Grade)
	require.Equal(t, "differ: unknown (1 nodes), v0.1 (1 nodes), v0.2 (1 nodes)", v.Found)
	require.Equal(t, wakebelltype.GradeGood, attended.Versions([][]wakebelltype.NodeReport{{a}, {a}}).Grade)
	require.Equal(t, "no node answered", attended.Versions(nil).Found)
}
