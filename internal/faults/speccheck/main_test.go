package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRecordedLogsAreExplained checks logs of real rounds of the scenarios races, kill and
// drain, of which a few timers were kept.
func TestRecordedLogsAreExplained(t *testing.T) {
	t.Parallel()
	log, err := os.ReadFile("testdata/recorded.jsonl")
	require.NoError(t, err)
	var out strings.Builder
	violations, err := check(strings.NewReader(string(log)), &out)
	require.NoError(t, err)
	require.Zero(t, violations, out.String())
	require.Contains(t, out.String(), "races: 12 timers explained, 0 not, 0 undecided, 0 skipped")
	require.Contains(t, out.String(), "kill: 12 timers explained")
}

// TestInjectedViolationIsReported changes the log of a real round.
func TestInjectedViolationIsReported(t *testing.T) {
	t.Parallel()
	log, err := os.ReadFile("testdata/recorded.jsonl")
	require.NoError(t, err)
	changed := regexp.MustCompile(`"Attempt":1,`).ReplaceAllLiteralString(string(log), `"Attempt":2,`)
	var out strings.Builder
	violations, err := check(strings.NewReader(changed), &out)
	require.NoError(t, err)
	require.NotZero(t, violations)
	require.Contains(t, out.String(), "FAIL races: trace: no order of the steps explains what was seen: a ")
	require.Contains(t, out.String(), "delivered to node-", "the history of the timer")
}

func TestBrokenLogIsReported(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"fault":{}}`:                      "delivery log, line 1: it does not begin",
		"{\"scenario\":\"a\",\"ttl\":1}\n{": "delivery log, line 2",
	} {
		_, err := check(strings.NewReader(text), &strings.Builder{})
		require.ErrorContains(t, err, want)
	}
}
