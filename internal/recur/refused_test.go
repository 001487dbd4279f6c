package recur

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Rules that RFC 5545 does not allow are refused, and not taken for others.
func TestRRulesThatTheRFCDoesNotAllow(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"FREQ=DAILY;COUNT=0":                                 "COUNT: 0, want at least 1",
		"FREQ=DAILY;INTERVAL=0":                              "INTERVAL: 0, want at least 1",
		"FREQ=MONTHLY;BYDAY=MO,0TU":                          "BYDAY: MO,0TU",
		"FREQ=DAILY;FREQ=WEEKLY":                             "FREQ is given twice",
		"FREQ=DAILY;COUNT=3;UNTIL=20300101T000000Z":          "COUNT and UNTIL are mutually exclusive",
		"DTSTART:20260101T000000Z\nRRULE:FREQ=DAILY;COUNT=0": "COUNT: 0",
	} {
		_, err := ParseRRule(text, noon)
		require.ErrorIs(t, err, ErrSyntax, text)
		require.ErrorContains(t, err, want, text)
	}
	for _, schedule := range []string{`{"__type__":"rrule","freq":3,"count":0}`, `{"__type__":"rrule","freq":3,"interval":0}`} {
		_, err := Read(Raw{Definition: []byte(`{"name":"n","task":"t","schedule":` + schedule + `}`)}, "n", nil)
		require.ErrorIs(t, err, ErrSyntax, schedule)
	}
}

func TestRulesWithoutInstantAreRefused(t *testing.T) {
	t.Parallel()
	for _, expr := range []string{"0 0 30 2 *", "0 0 31 4,6 *", ", * * * *", "1,,2 * * * *", "* * * * mon,"} {
		_, err := Cron(expr, time.UTC, false)
		require.ErrorIs(t, err, ErrSyntax, expr)
	}
	var e Entry
	require.ErrorIs(t, e.SetCrontab(Crontab{DayOfMonth: "30", Month: "2"}), ErrSyntax)
	require.NoError(t, e.SetCrontab(Crontab{DayOfMonth: "29", Month: "2", DayOfWeek: "0"}))
}

func TestSundayIs7InCron(t *testing.T) {
	t.Parallel()
	for expr, same := range map[string]string{
		"1-7/2": "1,3,5,0", "0-7/3": "0,3,6", "5-7": "5,6,0", "7": "0", "7/2": "0", "fri-7": "5,6,0", "7-7": "0", "1,6-7": "1,6,0",
	} {
		rule, err := Cron("0 0 * * "+expr, time.UTC, false)
		require.NoError(t, err, expr)
		want, err := Cron("0 0 * * "+same, time.UTC, false)
		require.NoError(t, err)
		require.Equal(t, instants(t, want, "2026-11-21T12:00Z", 14), instants(t, rule, "2026-11-21T12:00Z", 14), expr)
	}
	for _, bad := range []string{"1-7/0", "1-7/x", "7-2", "8-7", "1-8"} {
		_, err := Cron("0 0 * * "+bad, time.UTC, false)
		require.ErrorIs(t, err, ErrSyntax, bad)
	}
}
