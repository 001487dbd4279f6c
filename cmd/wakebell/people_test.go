package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/clitest"
)

// Every flag for a duration takes days and weeks.
func TestDurationsTakeDaysAndWeeks(t *testing.T) {
	t.Parallel()
	checked := 0
	for name, cmd := range clitest.Leaves(newRoot(&cli.App{})) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() == "duration" {
				checked++
				require.NoError(t, f.Value.Set("1w2d"), "%s --%s", name, f.Name)
				require.Equal(t, "216h0m0s", f.Value.String(), "%s --%s", name, f.Name)
				require.ErrorContains(t, f.Value.Set("1y"), "is not a duration such as", "%s --%s", name, f.Name)
			}
		})
	}
	require.Greater(t, checked, 30)
}

// Every command is in a group of --help.
func TestHelpGroupsCommands(t *testing.T) {
	t.Parallel()
	for _, cmd := range newRoot(&cli.App{}).Commands() {
		require.NotEmpty(t, cmd.GroupID, cmd.Name())
	}
}

// Output to a program has no colour and absolute instants, unless flags ask for them.
func TestColoursAndInstantsOfTables(t *testing.T) {
	b := setup(t)
	b.fine("schedule", "-t", "TOPIC", "--id", "x", "--in", "3h")
	plain := b.fine("ls", "-t", "TOPIC")
	require.NotContains(t, plain, "\x1b")
	require.Regexp(t, `pending  \d{4}-\d\d-\d\dT`, plain)
	require.Equal(t, plain, b.fine("ls", "-t", "TOPIC", "--color", "never", "--times", "absolute"))
	require.Contains(t, b.fine("ls", "-t", "TOPIC", "--color", "always"), "\x1b[1mID\x1b[m")
	require.Contains(t, b.fine("ls", "-t", "TOPIC", "--times", "relative"), "pending  in 3 h")
	require.Regexp(t, `"due":"\d{4}-`, b.fine("ls", "-t", "TOPIC", "--times", "relative", "-o", "json"))
	code, _, stderr := b.call("ls", "-t", "TOPIC", "--color", "blue")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, stderr, "want one of auto, always, never")
}

// A listing that is interrupted says where to continue, and what it listed is printed.
func TestInterruptedListingSaysWhereToContinue(t *testing.T) {
	b := setup(t)
	b.fine("schedule", "-t", "TOPIC", "--id", "x", "--count", "1500", "--in", "1h")
	read, write, err := os.Pipe() // without a reader the program waits in the middle of the listing
	require.NoError(t, err)
	r := b.startTo(write, "ls", "-t", "TOPIC", "--limit", "0", "-o", "json")
	first := make([]byte, 1000)
	_, err = read.Read(first)
	require.NoError(t, err)
	r.cancel()
	listed := make(chan string, 1)
	go func() {
		var all strings.Builder
		all.Write(first)
		for buf := make([]byte, 1<<16); ; {
			n, err := read.Read(buf)
			all.Write(buf[:n])
			if err != nil {
				listed <- all.String()
				return
			}
		}
	}()
	require.Equal(t, cli.ExitError, r.wait())
	require.NoError(t, write.Close())
	lines := strings.Count(<-listed, "\n")
	said := regexp.MustCompile(`wakebell: (\d+) listed; --after '(\S+)' continues: .*interrupted`).FindStringSubmatch(r.err.String())
	require.NotEmpty(t, said, r.err.String())
	require.Len(t, b.found("--limit", "0", "--after", said[2]), 1500-lines)
	require.NoError(t, read.Close())
}
