package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

func TestExitCodes(t *testing.T) {
	b := setup(t)
	b.fine("schedule", "-t", "TOPIC", "--id", "there", "--in", "1h")
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"help", []string{"--help"}, cli.ExitOK, ""},
		{"version", []string{"--version"}, cli.ExitOK, ""},
		{"help of a command", []string{"dead", "ls", "--help"}, cli.ExitOK, ""},
		{"no command", nil, cli.ExitUsage, "a command is required"},
		{"no subcommand", []string{"dead"}, cli.ExitUsage, "a command is required"},
		{"unknown command", []string{"frobnicate"}, cli.ExitUsage, "unknown command"},
		{"unknown subcommand", []string{"dead", "rise"}, cli.ExitUsage, "unknown command"},
		{"unknown flag", []string{"ls", "--frobnicate"}, cli.ExitUsage, "unknown flag"},
		{"missing flag", []string{"ls"}, cli.ExitUsage, `"topic" not set`},
		{"missing argument", []string{"get", "-t", "TOPIC"}, cli.ExitUsage, "accepts 1 arg"},
		{"surplus argument", []string{"ls", "-t", "TOPIC", "x"}, cli.ExitUsage, "takes no argument"},
		{"empty topic", []string{"ls", "-t", ""}, cli.ExitUsage, "topic"},
		{"bad choice", []string{"ls", "-t", "TOPIC", "-o", "xml"}, cli.ExitUsage, "want one of table, json"},
		{"bad url", []string{"ls", "-t", "TOPIC", "--redis", "http://x"}, cli.ExitUsage, "--redis"},
		{"equal keys", []string{"ls", "-t", "TOPIC", "--timeline-key", "k", "--payloads-key", "k"}, cli.ExitUsage, `both "k"`},
		{"no server", []string{"ls", "-t", "TOPIC", "--redis", "unix:///nowhere/redis.sock"}, cli.ExitError, "no such file"},
		{"found", []string{"get", "-t", "TOPIC", "there"}, cli.ExitOK, ""},
		{"not found", []string{"get", "-t", "TOPIC", "nowhere"}, cli.ExitNotFound, "timer not found"},
		{"cancel without ids", []string{"cancel", "-t", "TOPIC"}, cli.ExitUsage, "either ids or --all"},
		{"cancel one and all", []string{"cancel", "-t", "TOPIC", "x", "--all"}, cli.ExitUsage, "either ids or --all"},
		{"cancel all without a terminal", []string{"cancel", "-t", "TOPIC", "--all"}, cli.ExitUsage, "--yes"},
		{"reschedule a missing timer", []string{"reschedule", "-t", "TOPIC", "missing", "--in", "1h"}, cli.ExitNotFound, "timer not found"},
		{"reschedule without an instant", []string{"reschedule", "-t", "TOPIC", "there"}, cli.ExitUsage, "at least one"},
		{"reschedule to two", []string{"reschedule", "-t", "TOPIC", "there", "--in", "1h", "--at", "2031-01-02T15:04:05Z"}, cli.ExitUsage, "none of the others"},
		{"reschedule to an invalid instant", []string{"reschedule", "-t", "TOPIC", "there", "--at", "soon"}, cli.ExitUsage, "--at"},
		{"run-now without ids", []string{"run-now", "-t", "TOPIC"}, cli.ExitUsage, "at least 1 arg"},
		{"pause nothing", []string{"pause"}, cli.ExitUsage, `"topic" not set`},
		{"retune to nothing", []string{"retune", "-t", "TOPIC", "--max-concurrent", "0"}, cli.ExitUsage, "--max-concurrent"},
		{"retune out of bounds", []string{"retune", "-t", "TOPIC", "--lease-ttl", "1ms"}, cli.ExitUsage, "lease_ttl"},
		{"retune and clear", []string{"retune", "-t", "TOPIC", "--lease-ttl", "1m", "--clear"}, cli.ExitUsage, "none of the others"},
		{"node without a topic", []string{"node"}, cli.ExitUsage, "at least one of the flags"},
		{"node with a topic twice", []string{"node", "-t", "TOPIC", "-t", "TOPIC"}, cli.ExitUsage, "has a handler already"},
		{"node with a wrong bound", []string{"node", "-t", "TOPIC", "--max-concurrent", "0"}, cli.ExitUsage, "MaxConcurrent"},
		{"node without Redis", []string{"node", "-t", "TOPIC", "--wait-for-redis", "0s", "--redis", "unix:///nowhere/redis.sock"}, cli.ExitError, "unavailable"},
		{"bench of nothing", []string{"bench", "--n", "0"}, cli.ExitUsage, "--n"},
		{"tail of too much", []string{"tail", "-t", "TOPIC", "-n", "1001"}, cli.ExitUsage, "--lines"},
		{"tail without Redis", []string{"tail", "-t", "TOPIC", "-f", "--redis", "unix:///nowhere/redis.sock"}, cli.ExitError, "unavailable"},
		{"listing below nothing", []string{"dead", "ls", "-t", "TOPIC", "--limit", "-1"}, cli.ExitUsage, "--limit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inner := &bundle{t, b.topic, b.redis, b.rdb}
			code, stdout, stderr := inner.call(c.args...)
			require.Equal(t, c.code, code, "%s\n%s", stdout, stderr)
			require.Contains(t, stderr, c.says)
			switch code {
			case cli.ExitOK:
				require.Empty(t, stderr)
				require.NotEmpty(t, stdout)
			case cli.ExitUsage:
				require.Contains(t, stderr, "--help'")
				require.Empty(t, stdout)
			}
		})
	}
}

func TestEveryCommandHasExamples(t *testing.T) {
	t.Parallel()
	for _, cmd := range newRoot(&cli.App{}).Commands() {
		require.NotEmpty(t, cmd.Example, cmd.Name())
		require.NotEmpty(t, cmd.Long, cmd.Name())
	}
}

func TestPasswordIsNotShown(t *testing.T) {
	b := setup(t)
	code, _, stderr := b.call("topics", "--redis", "redis://:secret@host:port")
	require.Equal(t, cli.ExitUsage, code)
	require.NotContains(t, stderr, "secret")
}

func TestErrorsAreEscaped(t *testing.T) {
	b := setup(t)
	code, _, stderr := b.call("get", "-t", "TOPIC", "\x1b[31m")
	require.Equal(t, cli.ExitNotFound, code)
	require.NotContains(t, stderr, "\x1b")
}

func TestEmbeddedRedisServesCommand(t *testing.T) {
	b := setup(t)
	require.Equal(t, "x\n", b.fine("--redis", "embedded", "schedule", "-t", "TOPIC", "--id", "x"))
	require.NotContains(t, b.fine("topics", "--redis", "embedded"), b.topic, "each command has a Redis of its own")
}

func TestGlobalFlagsNameKeys(t *testing.T) {
	b := setup(t)
	keys := []string{"--prefix", b.topic + ".", "--timeline-key", "tl", "--payloads-key", "pl"}
	args := func(list ...string) []string { return append(list, keys...) }
	b.fine(args("schedule", "-t", "x", "--id", "a", "--in", "1h")...)
	full := b.topic + ".x"
	require.Equal(t, int64(1), b.rdb.ZCard(t.Context(), "tl:"+full).Val())
	require.Equal(t, int64(1), b.rdb.HLen(t.Context(), "pl:"+full).Val())
	listed := objects(t, b.fine(args("ls", "-t", "x", "-o", "json")...))
	require.Equal(t, full, listed[0]["topic"])
	topics := objects(t, b.fine(args("topics", "-o", "json")...))
	require.Len(t, topics, 1)
	require.Equal(t, map[string]any{
		"topic": full, "timers": 1.0, "due": 0.0, "dead": 0.0, "nodes": 0.0, "shards": 1.0, "unattended": "", "division": []any{}, "reports": []any{}, "settings": map[string]any{},
		"paused": false, "paused_at": "", "paused_by": "", "paused_reason": "", "paused_until": "", "fault": "", "oldest_due_s": float64(0), "late_ms": float64(0), "rate": float64(0), "problem": "",
	}, topics[0])
	cancelled := objects(t, b.fine(args("cancel", "-t", "x", "a", "-o", "json")...))
	require.Equal(t, map[string]any{"topic": full, "id": "a", "presence": "pending"}, cancelled[0])
}

func TestSuggestionIsReadable(t *testing.T) {
	b := setup(t)
	code, _, stderr := b.call("lss")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, stderr, "wakebell: Did you mean this?\nwakebell:   ls\n")
	require.NotContains(t, stderr, `\t`)
}
