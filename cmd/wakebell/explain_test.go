package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

// The commands that an explanation names exist, and their flags are those that they have.
func TestExplain(t *testing.T) {
	b := setup(t)
	explained := func(args ...string) map[string]any {
		t.Helper()
		line := objects(t, b.fine(append(args, "-o", "json")...))[0]
		commands := line["commands"].([]any)
		for _, wait := range line["waits"].([]any) {
			commands = append(commands, wait.(map[string]any)["do"])
		}
		for _, each := range commands {
			requireCommand(t, strings.Fields(each.(string)))
		}
		return line
	}
	cause := func(line map[string]any) any { return line["waits"].([]any)[0].(map[string]any)["cause"] }

	b.fine("schedule", "-t", "TOPIC", "--id", "x", "--in", "1h", "--json", "{}")
	require.Equal(t, "not-due", cause(explained("explain", "TOPIC", "x")))
	b.fine("run-now", "-t", "TOPIC", "x")
	b.fine("pause", "-t", "TOPIC", "--reason", "the bank is down", "--for", "2h")
	line := explained("explain", "TOPIC", "x")
	require.Equal(t, "paused", cause(line))
	require.Contains(t, line["summary"], "the bank is down")
	require.Contains(t, fmt.Sprint(line["past"]), "run now by ")
	shown := b.fine("explain", "TOPIC", "x")
	require.Regexp(t, `(?m)^waits +paused: its topic is paused by .*: the bank is down, since `, shown)
	require.Regexp(t, `(?m)^do +wakebell resume --topic `, shown)

	code, stdout, stderr := b.call("explain", "TOPIC", "absent")
	require.Equal(t, cli.ExitNotFound, code)
	require.Regexp(t, `(?m)^state +unknown$`, stdout)
	require.Contains(t, stderr, "no such timer")

	b.fine("schedules", "put", "TOPIC", "--topic", "TOPIC", "--every", "1h")
	require.Equal(t, "not-due", cause(explained("schedules", "explain", "TOPIC")))
	b.fine("schedules", "pause", "TOPIC")
	require.Equal(t, "paused", explained("schedules", "explain", "TOPIC")["state"])
	code, _, _ = b.call("schedules", "explain", "TOPIC-absent")
	require.Equal(t, cli.ExitNotFound, code)
	b.fine("schedules", "rm", "TOPIC", "--yes") // other tests of this Redis count schedules
	require.Equal(t, "unknown", explained("gate", "explain", "TOPIC")["state"])
}

// requireCommand requires that the words are those of a command, and that it has their flags.
func requireCommand(t *testing.T, words []string) {
	t.Helper()
	root := newRoot(&cli.App{})
	cmd, rest, err := root.Find(words)
	require.NoError(t, err, words)
	require.NotEqual(t, root, cmd, words)
	for _, word := range rest {
		if name, isFlag := strings.CutPrefix(word, "--"); isFlag && name != "help" {
			require.NotNilf(t, cmd.Flags().Lookup(name), "%v: %s", words, word)
		}
	}
}
