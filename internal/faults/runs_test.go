package faults

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The account of beats detects each kind of violation.
func TestRunAccount(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_000_000, 0).UTC()
	at := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	for _, test := range []struct {
		name    string
		timers  []int // seconds after the start
		counted int64
		printed []int
		late    time.Duration // of those that are printed
		want    Judgement
	}{
		{"no violation", []int{0, 1, 2}, 3, []int{0, 2}, 0, Judgement{Timers: 3, Scheduled: 3, Deliveries: 3}},
		{"an instant has no timer", []int{0, 2}, 2, []int{0, 2}, 0, Judgement{Timers: 2, Scheduled: 3, Deliveries: 2, Lost: 1}},
		{"the first instant has no timer", []int{1}, 1, nil, 0, Judgement{Timers: 1, Scheduled: 2, Deliveries: 1, Lost: 1}},
		{"more runs than timers", []int{0, 1}, 3, []int{0, 1}, 0, Judgement{Timers: 2, Scheduled: 2, Deliveries: 3, Repeated: 1, Uncaused: 1}},
		{"two beats print the same run", []int{0, 1}, 2, []int{0, 1, 1}, 0, Judgement{Timers: 2, Scheduled: 2, Deliveries: 2, Repeated: 1, Uncaused: 1}},
		{"early", []int{0}, 1, []int{0}, -time.Microsecond, Judgement{Timers: 1, Scheduled: 1, Deliveries: 1, Early: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a := newRunAccount()
			a.expect("x", start, time.Second)
			for _, n := range test.timers {
				require.NoError(t, a.timer("x@"+at(n).Format(time.RFC3339Nano)))
			}
			for _, n := range test.printed {
				a.printed(printedRun{"x", at(n), at(n).Add(test.late)})
			}
			a.counted("x", test.counted)
			got := a.judge()
			require.Equal(t, test.want.Lost+test.want.Repeated > 0, len(got.Violations) > 0)
			got.Violations = nil
			require.Equal(t, &test.want, got)
		})
	}

	a := newRunAccount()
	a.expect("x", start, 1500*time.Millisecond)
	require.NoError(t, a.timer("x@"+start.Format(time.RFC3339Nano)))
	require.NoError(t, a.timer("x@"+at(2).Format(time.RFC3339Nano)))
	a.counted("x", 2)
	j := a.judge()
	require.Equal(t, []int{1, 1}, []int{j.Lost, j.Illegal}, "a timer off the grid")
}

// The lateness of runs that a kill may have delayed is reported separately.
func TestRunAccountOfLateness(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_000_000, 0).UTC()
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	a := newRunAccount()
	a.expect("x", start, time.Second)
	a.probed(at(1), at(1))
	a.probed(at(7), at(7))
	a.probed(at(8.05), at(8.05))
	a.probed(at(8.2), at(8.2))
	a.probed(at(18.9), at(19.05)) // the machine was stalled
	a.probed(at(30), at(30))
	a.killed(at(10))
	a.killed(at(20))
	for _, r := range [][2]float64{
		{0, 5}, // before the probe: not counted
		{8, 8.1},
		{12.5, 12.6},
		{19, 19.1},
		{9.9, 10.2},
		{11.9, 12.2},
		{20.5, 20.8},
	} {
		a.printed(printedRun{"x", at(r[0]), at(r[1])})
	}
	notes := fmt.Sprint(a.notes())
	require.Contains(t, notes, "lateness, away from kills: p50 100ms, p99 100ms, max 100ms of 3 ")
	require.Contains(t, notes, "2s after a kill: p50 300ms, p99 300ms, max 300ms of 3 ")
	require.Contains(t, notes, "at most 5ms: p50 100ms, p99 100ms, max 100ms of 1 ")
}
