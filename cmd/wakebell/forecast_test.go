package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

func TestForecast(t *testing.T) {
	b := setup(t)
	b.fine("schedule", "-t", "TOPIC", "--id", "x", "--count", "6", "--in", "90m")
	b.fine("retune", "-t", "TOPIC", "--rate-limit", "1", "--rate-per", "1m")
	line := objects(t, b.fine("forecast", "-t", "TOPIC", "--for", "3h", "--bars", "6", "-o", "json"))[0]
	require.EqualValues(t, 1800, line["step_s"])
	require.Len(t, line["at"], 6)
	require.EqualValues(t, 6, line["total"])
	require.EqualValues(t, 6, line["topics"].([]any)[0].(map[string]any)["total"])
	shown := b.fine("forecast", "-t", "TOPIC", "--for", "3h")
	require.Regexp(t, `(?m)^due +6$`, shown)
	require.Regexp(t, `(?m)^peak +[3-6] in a minute, `, shown)
	require.Regexp(t, `(?m)^warning +`+b.topic+`: up to [2-5]m0s late, from .*: its rate limit is 1 a minute$`, shown)
	require.Regexp(t, `(?m)^`+b.topic+` `, shown)

	code, _, stderr := b.call("forecast", "-t", "TOPIC-absent")
	require.Equal(t, cli.ExitNotFound, code, stderr)
	for _, wrong := range [][]string{{"--for", "1s"}, {"--bars", "201"}, {"--for", "soon"}} {
		code, _, stderr := b.call(append([]string{"forecast"}, wrong...)...)
		require.Equal(t, cli.ExitUsage, code, stderr)
	}
}
