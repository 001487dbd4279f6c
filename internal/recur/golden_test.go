package recur

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// goldenStep is what a real RedBeat wrote in one step.
type goldenStep struct {
	Op    string    `json:"op"`
	Now   time.Time `json:"now"`
	Score *int64    `json:"score"`
	DueAt string    `json:"due_at"`
	Keys  map[string]struct {
		Type  string `json:"type"`
		Value any    `json:"value"`
	} `json:"keys"`
}

func goldenSteps(t testing.TB) []goldenStep {
	t.Helper()
	raw, err := os.ReadFile("testdata/golden-beat.json")
	require.NoError(t, err)
	var file struct{ Steps []goldenStep }
	require.NoError(t, json.Unmarshal(raw, &file))
	return file.Steps
}

// hashes returns the entries of a step by their names.
func (s goldenStep) hashes() map[string]Raw {
	all := map[string]Raw{}
	for key, value := range s.Keys {
		if value.Type != "hash" {
			continue
		}
		var raw Raw
		for _, pair := range value.Value.([]any) {
			field, text := pair.([]any)[0].(string), []byte(pair.([]any)[1].(string))
			if field == "definition" {
				raw.Definition = text
			} else {
				raw.Meta = text
			}
		}
		all[strings.TrimPrefix(key, "redbeat:")] = raw
	}
	return all
}

// An entry that RedBeat wrote decodes to the instants that RedBeat computed, within
// the second or two by which it is early, and is written back unchanged.
func TestGolden(t *testing.T) {
	t.Parallel()
	read := 0
	for _, step := range goldenSteps(t) {
		for name, raw := range step.hashes() {
			if raw.Definition == nil { // only the meta field that RedBeat leaves
				_, err := Read(raw, name, time.UTC)
				require.ErrorIs(t, err, ErrSyntax, step.Op)
				continue
			}
			e, err := Read(raw, name, time.UTC)
			require.NoError(t, err, step.Op)
			read++
			require.JSONEq(t, string(raw.Definition), string(e.Definition.Bytes()), step.Op)
			checkStrictly(t, e.Raw())
			if step.DueAt != "" {
				require.Equal(t, wantedDue(t, step), dueAt(e, step.Now), step.Op)
			}
		}
	}
	require.Greater(t, read, 20)
}

// wantedDue returns the instant that RedBeat computed. RedBeat reads the clock twice
// for it, so it is rounded.
func wantedDue(t *testing.T, step goldenStep) string {
	t.Helper()
	if step.DueAt == "None" {
		return "never"
	}
	at, err := time.Parse("2006-01-02 15:04:05.999999-07:00", step.DueAt)
	require.NoError(t, err)
	if !at.After(step.Now) {
		return "now"
	}
	return at.Round(100 * time.Millisecond).UTC().Format(time.RFC3339Nano)
}

func dueAt(e Entry, now time.Time) string {
	e.Definition.Enabled = true
	p := e.Plan(now)
	switch {
	case len(p.Due) > 0:
		return "now"
	case p.Next.IsZero():
		return "never"
	default:
		return p.Next.Round(100 * time.Millisecond).UTC().Format(time.RFC3339Nano)
	}
}

func TestHandWritten(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/golden-beat.json")
	require.NoError(t, err)
	var file struct {
		Cases map[string]struct {
			Definition json.RawMessage `json:"definition"`
			Meta       json.RawMessage `json:"meta"`
			Last       string          `json:"last_run_at"`
			Runs       int64           `json:"run_count"`
		} `json:"hand_written_decode"`
	}
	require.NoError(t, json.Unmarshal(raw, &file))
	for name, c := range file.Cases {
		switch {
		case name == "unknown type":
			_, err := Read(Raw{Definition: c.Definition}, "m", time.UTC)
			require.ErrorIs(t, err, ErrSyntax, name)
		case c.Definition != nil:
			e, err := Read(Raw{Definition: c.Definition}, "m", time.UTC)
			require.NoError(t, err, name)
			require.True(t, e.Enabled(), name)
			require.Equal(t, "now", dueAt(e, time.Now()), "%s: it never ran", name)
		default:
			m, err := ReadMeta(c.Meta)
			require.NoError(t, err, name)
			require.Equal(t, c.Runs, m.Runs, name)
			if c.Last != "" && c.Last != "None" {
				want, err := time.Parse("2006-01-02 15:04:05.999999-07:00", c.Last)
				require.NoError(t, err)
				require.True(t, want.Equal(m.LastRunAt), name)
			}
		}
	}
}

// checkStrictly asserts the rules of RedBeat's reader: all required keys, and no
// unknown ones.
func checkStrictly(t testing.TB, raw Raw) {
	t.Helper()
	checkSchedule(t, checkFields(t, raw))
}

// checkFields is checkStrictly without the schedule, which it returns.
func checkFields(t testing.TB, raw Raw) json.RawMessage {
	t.Helper()
	var d, m map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(Portable(raw.Definition), &d))
	require.NoError(t, json.Unmarshal(raw.Meta, &m))
	require.ElementsMatch(t, []string{"name", "task", "args", "kwargs", "options", "schedule", "enabled"}, keysOf(d))
	require.ElementsMatch(t, []string{"last_run_at", "total_run_count"}, keysOf(m))
	require.Contains(t, "[n", string(d["args"][:1]))
	require.Equal(t, "{", string(d["kwargs"][:1]))
	require.Equal(t, "{", string(d["options"][:1]))
	if string(m["last_run_at"]) != "null" {
		var at map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(m["last_run_at"], &at))
		require.ElementsMatch(t, []string{"__type__", "year", "month", "day", "hour", "minute", "second", "microsecond", "timezone"}, keysOf(at))
	}
	return d["schedule"]
}

func checkSchedule(t testing.TB, raw json.RawMessage) {
	t.Helper()
	if raw[0] != '{' {
		require.Regexp(t, `^[0-9.]+$`, string(raw))
		return
	}
	var s map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &s))
	switch string(s["__type__"]) {
	case `"interval"`:
		require.ElementsMatch(t, []string{"__type__", "every", "relative"}, keysOf(s))
	case `"crontab"`:
		require.Subset(t, []string{"__type__", "minute", "hour", "day_of_week", "day_of_month", "month_of_year"}, keysOf(s))
	case `"rrule"`:
		require.Subset(t, []string{
			"__type__", "freq", "interval", "wkst", "count", "bysetpos", "bymonth", "bymonthday", "byyearday", "byeaster",
			"byweekno", "byweekday", "byhour", "byminute", "bysecond", "dtstart", "dtstart_tz", "until", "until_tz",
		}, keysOf(s))
		require.Contains(t, s, "freq")
	default:
		require.Fail(t, "unknown kind", string(raw))
	}
}

func keysOf(m map[string]json.RawMessage) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}
