package recurring_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/recurring"
)

// An entry with arguments that JSON cannot represent can be exported as JSON and
// imported as Python wrote it.
func TestArgumentsThatJSONDoesNotHaveAreExportedAndImported(t *testing.T) {
	t.Parallel()
	rdb, _ := redistest.Embedded(t)
	s := open(t, rdb, connection.Config{})
	const definition = `{"name": "n", "task": "t", "args": [NaN, 1], "kwargs": {"a": -Infinity}, "options": {}, "schedule": 30.0, "enabled": true}`
	require.NoError(t, rdb.HSet(t.Context(), "redbeat:n", "definition", definition).Err())
	state, err := s.Get(t.Context(), "n")
	require.NoError(t, err)
	require.Empty(t, state.Fault)
	dump, err := s.Export(t.Context(), "n")
	require.NoError(t, err)
	line, err := json.Marshal(dump)
	require.NoError(t, err)
	var back recurring.Dump
	require.NoError(t, json.Unmarshal(line, &back))
	require.NoError(t, rdb.Del(t.Context(), "redbeat:n").Err())
	require.NoError(t, s.Import(t.Context(), back))
	stored := rdb.HGet(t.Context(), "redbeat:n", "definition").Val()
	require.Contains(t, stored, `"args":[NaN,1],"kwargs":{"a":-Infinity}`)
}

// A rule without a start has all of its runs: the first one is not the moment of Put,
// which would be over.
func TestRRuleWithoutStartHasItsCount(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"FREQ=DAILY;COUNT=1": 1, "FREQ=DAILY;COUNT=4": 4, "FREQ=SECONDLY;COUNT=3": 3} {
		for _, now := range []time.Time{time.Unix(1_800_000_000, 0), time.Unix(1_800_000_000, 123_456_789)} {
			all, err := recurring.Rule{RRule: text}.Next(t.Context(), now, 10)
			require.NoError(t, err)
			require.Len(t, all, want, text)
			require.WithinRange(t, all[0], now.Add(time.Microsecond), now.Add(time.Second))
		}
	}
}

// A rule that is put again replaces the one that a Python process has given the entry meanwhile,
// and begins at another Start.
func TestRRuleIsPutAgain(t *testing.T) {
	t.Parallel()
	rdb, _ := redistest.Embedded(t)
	s := open(t, rdb, connection.Config{})
	start := time.Date(2040, 1, 1, 8, 0, 0, 0, time.UTC)
	for _, zone := range []string{"", "Europe/Berlin"} {
		put := func(start time.Time) recurring.State {
			err := s.Put(t.Context(), recurring.Schedule{Name: "n", Topic: "t", Rule: recurring.Rule{RRule: "FREQ=DAILY", Zone: zone, Start: start}})
			require.NoError(t, err)
			state, err := s.Get(t.Context(), "n")
			require.NoError(t, err)
			return state
		}
		for _, from := range []time.Time{start, start.Add(time.Hour), {}} {
			first := put(from)
			require.Equal(t, first.Next, put(from).Next)
			if !from.IsZero() {
				require.Equal(t, from, first.Next.UTC(), zone)
			}
			definition := `{"name":"n","task":"t","args":[],"kwargs":{},"options":{},"schedule":5.0,"enabled":true}`
			require.NoError(t, rdb.HSet(t.Context(), "redbeat:n", "definition", definition).Err())
			require.Contains(t, put(from).RuleText, "rrule", zone)
		}
	}
}
