package recur

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Reading a hash ends for any content, and an entry that can be read is written so
// that it reads the same.
func FuzzRead(f *testing.F) {
	for _, step := range goldenSteps(f) {
		for name, raw := range step.hashes() {
			f.Add(name, raw.Definition, raw.Meta, []byte(nil))
		}
	}
	f.Add("n", []byte(`{"name":"n","task":"t","schedule":30}`), []byte(`{"last_run_at":null}`), []byte(`{"id":"x","cron":"* * * * *","zone":"Europe/Berlin"}`))
	f.Add("n", []byte(`{"name":"n","task":"t","args":[NaN,"\\u0000NaN"],"schedule":{"__type__":"rrule","freq":3,"dtstart_tz":60.0}}`), []byte(`{"last_run_at":{"year":1,"month":1,"day":1,"timezone":-3600.0}}`), []byte(nil))
	f.Fuzz(func(t *testing.T, name string, definition, meta, ours []byte) {
		e, err := Read(Raw{definition, meta, ours}, name, time.UTC)
		if err != nil {
			return
		}
		e.Rule()
		e.Body()
		checkFields(t, e.Raw()) // the schedule stays unchanged
		again, err := Read(e.Raw(), name, time.UTC)
		require.NoError(t, err)
		require.Equal(t, e.Raw(), again.Raw())
	})
}

func FuzzCron(f *testing.F) {
	for _, s := range []string{"* * * * *", "*/5 1-3 * * 7", "0 0 9 * * MON-FRI", "@daily", "TZ= *", "1-7/2 * * * 5-7", "* * * * 1-7/2", ", * * * *"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		rule, err := Cron(expr, time.UTC, false)
		if err != nil {
			require.ErrorIs(t, err, ErrSyntax)
			return
		}
		if at := rule.Next(noon); !at.IsZero() {
			require.True(t, at.After(noon))
		}
	})
}

func FuzzCrontab(f *testing.F) {
	for _, s := range []string{"*", "*/5", "1-3", "fri-mon/2", "1,2,,3", "-1", "５"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, field string) {
		rule, err := CrontabIn(Crontab{Minute: field}, time.UTC, false)
		if err != nil {
			require.ErrorIs(t, err, ErrSyntax)
			return
		}
		if field != "" {
			require.True(t, rule.Next(noon).After(noon))
		}
	})
}

func FuzzRRule(f *testing.F) {
	for _, s := range []string{"FREQ=DAILY;COUNT=3", "DTSTART;TZID=Europe/Berlin:20260105T090000\nRRULE:FREQ=WEEKLY;BYDAY=MO", "FREQ=MINUTELY;BYHOUR=9", "FREQ=DAILY;BYDAY=0MO;COUNT=0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 200 {
			return
		}
		r, err := ParseRRule(text, noon)
		if err != nil {
			require.ErrorIs(t, err, ErrSyntax)
			return
		}
		again, err := ParseRRule(r.String(), noon)
		require.NoError(t, err, r.String())
		require.Equal(t, r.String(), again.String())
	})
}
