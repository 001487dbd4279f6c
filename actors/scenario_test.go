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

// TestScenarios runs the stories in testdata/scenarios: actors, store and an
// embedded Redis in virtual time, without jitter. A story is a text of blocks,
//
//	commands, one a line
//	----
//	what happened, each with the time since the story began
//
// with comments (#) and empty lines between. The commands are methods of world,
// listed in its commands; what handlers do is told by handle, see script.
// go test -run Scenario -update rewrites what happened.
func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "scenarios", "*.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			told, err := os.ReadFile(file)
			require.NoError(t, err)
			var happened string
			synctest.Test(t, func(t *testing.T) { happened = play(t, string(told)) })
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(happened), 0o600))
				return
			}
			require.Equal(t, string(told), happened, "go test -run Scenario -update rewrites it")
		})
	}
}

// play runs a story and returns it with what happened.
func play(t *testing.T, story string) string {
	t.Helper()
	w := newWorld(t)
	var out strings.Builder
	pending, inOutput := false, false
	for line := range strings.Lines(story) {
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
		case inOutput: // what happened last time
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

// What was decided before an exchange is told before it, whatever came of the
// exchange meanwhile.
func TestPlaceOfADecision(t *testing.T) {
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
