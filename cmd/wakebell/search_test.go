package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

func (b *bundle) found(args ...string) (ids []string) {
	b.t.Helper()
	for _, line := range objects(b.t, b.fine(append([]string{"ls", "-t", "TOPIC", "-o", "json"}, args...)...)) {
		ids = append(ids, line["id"].(string))
	}
	return ids
}

func TestTimersAreSearched(t *testing.T) {
	b := setup(t)
	b.fine("schedule", "-t", "TOPIC", "--id", "inv-1", "--in", "1h", "--text", "card 4711")
	b.fine("schedule", "-t", "TOPIC", "--id", "inv-2", "--in", "2h", "--header", "tenant=acme")
	b.fine("schedule", "-t", "TOPIC", "--id", "mail-1", "--in", "3h", "--json", `{"of":"inv-2"}`)
	b.fine("schedule", "-t", "TOPIC", "--count", "300", "--id", "load", "--in", "4h")
	require.Equal(t, []string{"inv-1", "inv-2"}, b.found("--search", "inv-"))
	require.Equal(t, []string{"inv-1"}, b.found("--search", "inv-", "--limit", "1"))
	require.Len(t, b.found("--search", "load-", "--limit", "0"), 300)
	require.Empty(t, b.found("--search", "nv-1"), "not a prefix")
	require.Equal(t, []string{"inv-1"}, b.found("--search", "4711", "--content"))
	require.Equal(t, []string{"inv-2"}, b.found("--search", "acme", "--content"))
	require.Equal(t, []string{"inv-2", "mail-1"}, b.found("--search", "inv-2", "--content"))
	require.Empty(t, b.found("--search", "inv-", "--due-before", "30m"))

	code, stdout, stderr := b.call("ls", "-t", "TOPIC", "--search", "inv-2", "--content", "--scan", "2", "-o", "json")
	require.Zero(t, code)
	require.Len(t, objects(t, stdout), 1)
	require.Regexp(t, `wakebell: 2 timers were read; --after '\S+' or a larger --scan continues`, stderr)
	for _, args := range [][]string{{"--search", ""}, {"--content"}, {"--search", "x", "--scan", "5"}, {"--search", "x", "--content", "--scan", "-1"}} {
		code, _, stderr := b.call(append([]string{"ls", "-t", "TOPIC"}, args...)...)
		require.Equal(t, cli.ExitUsage, code, stderr)
	}
}

// A bulk change of a search changes what it lists with --dry-run, and nothing else.
func TestTimersOfSearchAreChanged(t *testing.T) {
	b := setup(t)
	b.fine("schedule", "-t", "TOPIC", "--count", "250", "--id", "inv", "--in", "1h")
	b.fine("schedule", "-t", "TOPIC", "--id", "other", "--in", "1h", "--text", "inv-7")
	for _, c := range []struct {
		args []string
		done string
	}{
		{[]string{"reschedule", "--in", "1w"}, "moved"}, {[]string{"run-now"}, "made due"}, {[]string{"cancel"}, "cancelled"},
	} {
		args := append(c.args, "-t", "TOPIC", "--search", "inv-", "-o", "json")
		code, stdout, stderr := b.call(append(args, "--dry-run")...)
		require.Zero(t, code, stderr)
		require.Len(t, objects(t, stdout), 250)
		require.Equal(t, fmt.Sprintf("wakebell: 250 timers would be %s; nothing was changed\n", c.done), stderr)
		require.Len(t, b.found("--search", "inv-", "--limit", "0"), 250)

		code, stdout, stderr = b.call(args...)
		require.Equal(t, cli.ExitUsage, code)
		require.Contains(t, stderr, "--yes is required without a terminal")
		require.Empty(t, stdout)

		changed := objects(t, b.fine(append(args, "--yes")...))
		require.Len(t, changed, 250)
		require.Equal(t, b.topic, changed[0]["topic"])
	}
	require.Equal(t, []string{"other"}, b.found())
	code, _, stderr := b.call("cancel", "-t", "TOPIC", "--search", "inv-", "--yes")
	require.Equal(t, cli.ExitNotFound, code)
	require.Contains(t, stderr, `no timers of `+b.topic+` whose ids begin with "inv-"`)
	b.fine("cancel", "-t", "TOPIC", "--search", "inv-7", "--content", "--yes")
	require.Empty(t, b.found())
	for _, args := range [][]string{
		{"cancel", "x", "--search", "y"},
		{"cancel", "--all", "--search", "y"},
		{"cancel", "x", "--dry-run"},
		{"run-now", "x", "--search", "y"},
		{"reschedule", "x", "--search", "y", "--in", "1d"},
		{"cancel", "--search", ""},
	} {
		code, _, stderr := b.call(append(args, "-t", "TOPIC")...)
		require.Equal(t, cli.ExitUsage, code, stderr)
	}
}
