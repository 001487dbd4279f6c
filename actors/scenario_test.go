package actors_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/poller"
)

var update = flag.Bool("update", false, "rewrite the outputs in testdata/scenarios")

// TestScenarios runs the scenarios in testdata/scenarios: actors, store and an
// embedded Redis in virtual time, without jitter. A scenario is a text of blocks,
//
//	commands, one a line
//	----
//	events, each with the time since the scenario began
//
// with comments (#) and empty lines between. The commands are methods of world,
// listed in its commands. The command "handle" sets what handlers do, see script.
// go test -run Scenario -update rewrites the events.
func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "scenarios", "*.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			var got string
			synctest.Test(t, func(t *testing.T) { got = play(t, string(want)) })
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
				return
			}
			require.Equal(t, string(want), got, "go test -run Scenario -update rewrites it")
		})
	}
}

// play runs a scenario and returns its text with the events of this run.
func play(t *testing.T, scenario string) string {
	t.Helper()
	w := newWorld(t)
	var out strings.Builder
	pending, inOutput := false, false
	for line := range strings.Lines(scenario) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "----":
			require.True(t, pending, "---- without a command")
			out.WriteString("----\n")
			for _, event := range w.happened() {
				out.WriteString(event + "\n")
			}
			pending, inOutput = false, true
		case line == "":
			inOutput = false
			out.WriteString("\n")
		case inOutput: // events of the last run
		case strings.HasPrefix(line, "#"):
			out.WriteString(line + "\n")
		default:
			w.run(line)
			pending = true
			out.WriteString(line + "\n")
		}
	}
	require.False(t, pending, "commands without ----")
	w.end()
	return out.String()
}

// TestPlaceOfDecision checks that a decision is printed before the exchanges of
// the same instant, which were sent after it.
func TestPlaceOfDecision(t *testing.T) {
	t.Parallel()
	decision := "+2s a context ends: " + poller.ErrLeaseTooOld.Error()
	for want, before := range map[int][]string{
		0: {"+2s exchange: nack a, claim b", "+2s b delivered, attempt 1"},
		1: {"+1s exchange: claim a", "+2s exchange: nack a"},
		2: {"+2s exchange: claim a", "+2s a delivered, attempt 1"},
	} {
		require.Equal(t, want, placeOf(before, decision))
	}
}
