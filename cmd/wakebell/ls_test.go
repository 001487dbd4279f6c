package main

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

func TestLs(t *testing.T) {
	b := setup(t)
	b.fine("schedule", "-t", "TOPIC", "--id", "late", "--at", "2031-01-02T15:04:05.5Z")
	b.fine("schedule", "-t", "TOPIC", "--id", "early\x1b[31m", "--at", "2030-01-02T15:04:05Z")
	b.golden("ls.txt", b.fine("ls", "-t", "TOPIC"))
	b.golden("ls.jsonl", b.fine("ls", "-t", "TOPIC", "-o", "json"))

	ids := func(args ...string) (ids []any) {
		for _, line := range objects(t, b.fine(append([]string{"ls", "-t", "TOPIC", "-o", "json"}, args...)...)) {
			ids = append(ids, line["id"])
		}
		return ids
	}
	require.Equal(t, []any{"early\x1b[31m"}, ids("--due-before", "2031-01-01T00:00:00Z"))
	require.Empty(t, ids("--due-before", "1m"))
	require.Empty(t, ids("--running"))
	require.Equal(t, []any{"early\x1b[31m"}, ids("--limit", "1"))
	require.Len(t, ids("--limit", "0"), 2)
	_, _, stderr := b.call("ls", "-t", "TOPIC", "--limit", "1")
	require.Contains(t, stderr, "more than 1")
	_, _, stderr = b.call("ls", "-t", "TOPIC", "--limit", "2")
	require.Empty(t, stderr)
	code, _, _ := b.call("ls", "-t", "TOPIC", "--due-before", "soon")
	require.Equal(t, cli.ExitUsage, code)
	b.fine("schedule", "-t", "empty-"+b.topic, "--id", "x", "--in", "1h")
	b.fine("cancel", "-t", "empty-"+b.topic, "x")
	require.Equal(t, "ID  STATE  DUE  ACTIVATION  ATTEMPTS  FAILURES\n", b.fine("ls", "-t", "empty-"+b.topic))
}

var (
	instants = regexp.MustCompile(`"(died|delivered_at|paused_at)":"20[^"]*"`)
	entries  = regexp.MustCompile(`"entry":"\d+-\d+"`)
	delays   = regexp.MustCompile(`"lateness_ms":[0-9.]+`)
)

// timeless removes the values from lines of JSON that differ between runs.
func timeless(lines string) string {
	lines = instants.ReplaceAllString(lines, `"$1":"NOW"`)
	lines = entries.ReplaceAllString(lines, `"entry":"ENTRY"`)
	return delays.ReplaceAllString(lines, `"lateness_ms":0`)
}
