package recur

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func instants(t testing.TB, rule When, from string, n int) (all []string) {
	t.Helper()
	at, err := time.Parse("2006-01-02T15:04Z", from)
	require.NoError(t, err)
	for range n {
		at = rule.Next(at)
		all = append(all, at.Format("01-02T15:04"))
	}
	return all
}

// Relative intervals keep to whole days and hours of local time when clocks change.
func TestRelativeIntervalsWhenClocksChange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		every      time.Duration
		zone, from string
		want       []string
	}{
		{24 * time.Hour, "Europe/Berlin", "2026-10-24T12:00Z", []string{"10-24T22:00", "10-25T23:00", "10-26T23:00"}},
		{7 * 24 * time.Hour, "America/New_York", "2026-10-26T12:00Z", []string{"11-02T05:00", "11-09T05:00", "11-16T05:00"}},
		{time.Hour, "Australia/Lord_Howe", "2024-10-05T13:30Z", []string{"10-05T14:30", "10-05T16:00", "10-05T17:00"}},
		{time.Hour, "Europe/Berlin", "2026-10-24T23:30Z", []string{"10-25T00:00", "10-25T01:00", "10-25T02:00"}},
	} {
		rule := Interval{Every: c.every, Relative: true, Zone: zoneNamed(t, c.zone)}
		require.Equal(t, c.want, instants(t, rule, c.from, 3), c.zone)
	}
}

// Rules with a wildcard minute or hour run in both passes of a repeated hour; fixed
// times run in the first.
func TestWildcardsRunInBothPassesOfRepeatedHour(t *testing.T) {
	t.Parallel()
	berlin := zoneNamed(t, "Europe/Berlin")
	for expr, want := range map[string][]string{
		"*/30 * * * *":  {"10-25T00:30", "10-25T01:00", "10-25T01:30", "10-25T02:00"},
		"@hourly":       {"10-25T01:00", "10-25T02:00", "10-25T03:00", "10-25T04:00"},
		"*/30 2 * * *":  {"10-25T00:30", "10-25T01:00", "10-25T01:30", "10-26T01:00"},
		"0,30 2 * * *":  {"10-25T00:30", "10-26T01:00", "10-26T01:30", "10-27T01:00"},
		"10 2-3 * * *":  {"10-25T00:10", "10-25T02:10", "10-26T01:10", "10-26T02:10"},
		"0 30 * * * *":  {"10-25T00:30", "10-25T01:30", "10-25T02:30", "10-25T03:30"},
		"* 30 2 25 * *": {"10-25T00:30", "10-25T00:30", "10-25T00:30", "10-25T00:30"},
	} {
		rule, err := Cron(expr, berlin, false)
		require.NoError(t, err)
		from := "2026-10-25T00:00Z"
		if expr == "10 2-3 * * *" {
			from = "2026-10-24T23:00Z"
		}
		require.Equal(t, want, instants(t, rule, from, 4), expr)
	}
}
