package recur

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Python computes crontabs and relative intervals in the zone of its app, so one with a
// zone of its own is disabled for Python, and only for Python.
func TestSchedulesWithTheirOwnZoneAreDisabledForPython(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set    func(*Entry) error
		python bool
	}{
		"crontab":  {func(e *Entry) error { return e.SetCrontab(Crontab{Hour: "9", Minute: "0"}) }, false},
		"relative": {func(e *Entry) error { return e.SetEvery(24*time.Hour, true) }, false},
		"interval": {func(e *Entry) error { return e.SetEvery(24*time.Hour, false) }, true},
	} {
		for zone, python := range map[string]bool{"Europe/Berlin": c.python, "": true} {
			e := Entry{Definition: Definition{Name: "n", Task: "t"}, Meta: Meta{LastRunAt: noon}, Ours: Ours{Zone: zone}}
			require.NoError(t, c.set(&e), name)
			e.SetEnabled(true)
			require.Equal(t, python, e.Definition.Enabled, "%s in %q", name, zone)
			back, err := Read(e.Raw(), "n", nil)
			require.NoError(t, err)
			require.True(t, back.Enabled(), name)
			require.NotZero(t, back.Plan(noon).Next, name)
			back.SetEnabled(false)
			require.False(t, back.Enabled(), name)
			require.False(t, back.Definition.Enabled, name)
			back.SetEnabled(true)
			require.True(t, back.Enabled(), name)
		}
	}
}

func TestRRulesInZone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0", "DTSTART:20260701T090000\nRRULE:FREQ=DAILY",
		"DTSTART:20260701T070000Z\nRRULE:FREQ=DAILY", "DTSTART;TZID=Europe/Berlin:20260701T090000\nRRULE:FREQ=DAILY",
	} {
		r, err := ParseRRuleIn(text, "Europe/Berlin", noon)
		require.NoError(t, err, text)
		rule, err := r.When(false)
		require.NoError(t, err)
		require.Equal(t, []string{"07-01T07:00"}, instants(t, rule, "2027-07-01T00:00Z", 1), text)
		require.Contains(t, r.String(), "TZID=Europe/Berlin", text)
	}
	_, err := ParseRRuleIn("DTSTART;TZID=Europe/Paris:20260701T090000\nRRULE:FREQ=DAILY", "Europe/Berlin", noon)
	require.ErrorIs(t, err, ErrSyntax)
}
