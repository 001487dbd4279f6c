package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

// dies makes n dead letters of x-0 to x-<n-1>, oldest first, and returns their
// entries.
func (b *bundle) dies(n int) (entries []string) {
	b.t.Helper()
	b.fine("schedule", "-t", "TOPIC", "--id", "x", "--count", fmt.Sprint(n), "--at", "2021-01-02T15:04:05Z", "--text", "hi", "--header", "k=v")
	node := b.start("node", "-t", "TOPIC", "--max-concurrent", "1", "--exec", `echo "no: $WAKEBELL_ID" >&2; exit 65`)
	list := func() string { return b.fine("dead", "ls", "-t", "TOPIC", "-o", "json") }
	node.eventually(func() bool { return strings.Count(list(), "\n") == n })
	require.Zero(b.t, node.stop())
	for _, letter := range objects(b.t, list()) {
		entries = append(entries, letter["entry"].(string))
	}
	return entries
}

func TestDeadLs(t *testing.T) {
	b := setup(t)
	b.dies(2)
	b.golden("dead_ls.jsonl", timeless(b.fine("dead", "ls", "-t", "TOPIC", "-o", "json")))
	table := b.fine("dead", "ls", "-t", "TOPIC", "--limit", "1")
	require.Contains(t, table, "exit status 65: no: x-0")
	require.NotContains(t, table, "x-1")
	for _, c := range []struct {
		filter string
		count  int
	}{
		{"--reason=no: x-1", 1},
		{"--reason=exit", 2},
		{"--older-than=1h", 0},
		{"--newer-than=1h", 2},
	} {
		require.Equal(t, c.count, strings.Count(b.fine("dead", "ls", "-t", "TOPIC", "-o", "json", c.filter), "\n"), c.filter)
	}
}

func TestDeadShow(t *testing.T) {
	b := setup(t)
	entry := b.dies(1)[0]
	b.golden("dead_show.json", timeless(b.fine("dead", "show", "-t", "TOPIC", entry, "-o", "json")))
	died := objects(t, b.fine("dead", "show", "-t", "TOPIC", entry, "-o", "json"))[0]["died"].(string)
	shown := strings.NewReplacer(entry, "ENTRY", died, "NOW").Replace(b.fine("dead", "show", "-t", "TOPIC", entry))
	b.golden("dead_show.txt", shown)
}

func TestDeadRedrive(t *testing.T) {
	b := setup(t)
	entries := b.dies(4)
	b.golden("dead_redrive.jsonl", timeless(b.fine("dead", "redrive", "-t", "TOPIC", entries[0], "--in", "1h", "-o", "json")))
	require.Contains(t, b.fine("get", "-t", "TOPIC", "x-0"), "pending")

	b.fine("schedule", "-t", "TOPIC", "--id", "x-1", "--in", "1h")
	code, stdout, stderr := b.call("dead", "redrive", "-t", "TOPIC", "--reason", "x-1", "--yes", "-o", "json")
	require.Zero(t, code, stderr)
	require.Equal(t, "skipped live", objects(t, stdout)[0]["outcome"])
	require.Contains(t, stderr, "skipped 1")
	stdout = b.fine("dead", "redrive", "-t", "TOPIC", entries[1], "--overwrite", "--yes")
	require.Equal(t, fmt.Sprintf("%-15s  overwritten     x-1\n", entries[1]), stdout)

	require.Empty(t, b.fine("dead", "redrive", "-t", "TOPIC", "--older-than", "1h", "--yes"))
	rest := b.fine("dead", "redrive", "-t", "TOPIC", "--all", "--rate", "10000", "--yes")
	require.Equal(t, 2, strings.Count(rest, "  redriven "))
	require.Empty(t, b.fine("dead", "ls", "-t", "TOPIC", "-o", "json"))
}

func TestDeadRm(t *testing.T) {
	b := setup(t)
	entries := b.dies(4)
	b.golden("dead_rm.json", b.fine("dead", "rm", "-t", "TOPIC", entries[0], "--yes", "-o", "json"))
	require.Equal(t, "deleted 0\n", b.fine("dead", "rm", "-t", "TOPIC", "--older-than", "1h", "-y"))
	require.Equal(t, "deleted 1\n", b.fine("dead", "rm", "-t", "TOPIC", "--reason", "x-2", "--newer-than", "1h", "-y"))
	require.Equal(t, "deleted 2\n", b.fine("dead", "rm", "-t", "TOPIC", "--all", "-y"))
}

func TestDeadLettersAreSelectedExplicitly(t *testing.T) {
	b := setup(t)
	entry := b.dies(1)[0]
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"show", "1-1"}, cli.ExitNotFound, "not found"},
		{[]string{"show", "x-0"}, cli.ExitUsage, "not the Entry"},
		{[]string{"redrive", "1-1"}, cli.ExitNotFound, "not found"},
		{[]string{"redrive"}, cli.ExitUsage, "give one of"},
		{[]string{"redrive", "--all", "--reason", "x", "-y"}, cli.ExitUsage, "give one of"},
		{[]string{"redrive", "--all"}, cli.ExitUsage, "--yes"},
		{[]string{"redrive", entry, "--overwrite"}, cli.ExitUsage, "--yes"},
		{[]string{"redrive", entry, "--rate", "0"}, cli.ExitUsage, "--rate"},
		{[]string{"redrive", entry, "--rate", "10001"}, cli.ExitUsage, "rate"},
		{[]string{"rm", "1-1", "-y"}, cli.ExitNotFound, "not found"},
		{[]string{"rm", entry}, cli.ExitUsage, "--yes"},
		{[]string{"rm", "-y"}, cli.ExitUsage, "give one of"},
		{[]string{"rm", "", "-y"}, cli.ExitUsage, "empty"},
		{[]string{"rm", "--reason", "", "-y"}, cli.ExitUsage, "--reason"},
		{[]string{"rm", "--older-than", "0s", "-y"}, cli.ExitUsage, "--older-than"},
		{[]string{"rm", "--newer-than", "-1s", "-y"}, cli.ExitUsage, "--newer-than"},
		{[]string{"rm", entry, "--all", "-y"}, cli.ExitUsage, "give one of"},
	} {
		code, stdout, stderr := b.call(append([]string{"dead", c.args[0], "-t", "TOPIC"}, c.args[1:]...)...)
		require.Equal(t, c.code, code, "%v: %s", c.args, stderr)
		require.Contains(t, stderr, c.says, "%v", c.args)
		require.Empty(t, stdout, "%v", c.args)
	}
	require.Equal(t, entry, objects(t, b.fine("dead", "ls", "-t", "TOPIC", "-o", "json"))[0]["entry"])
}
