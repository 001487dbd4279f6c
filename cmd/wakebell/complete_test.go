package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/internal/redistest"
)

// completions returns the completions of a command line, and the directive that ends
// them.
func (b *bundle) completions(args ...string) (offered []string, directive string) {
	b.t.Helper()
	code, stdout, _ := b.call(append([]string{"__complete"}, args...)...)
	require.Equal(b.t, cli.ExitOK, code)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	for _, line := range lines[:len(lines)-1] {
		word, _, _ := strings.Cut(line, "\t")
		offered = append(offered, word)
	}
	return offered, lines[len(lines)-1]
}

// offers waits until these completions are offered: completion omits topics that it
// does not find in time.
func (b *bundle) offers(want []string, args ...string) {
	b.t.Helper()
	var offered []string
	var directive string
	require.Eventually(b.t, func() bool {
		offered, directive = b.completions(args...)
		return slices.Equal(want, offered)
	}, waitLimit, waitTick, "%v: %q", args, want)
	require.Equal(b.t, noFiles, directive)
}

const (
	noFiles = ":4"
	files   = ":0"
)

func TestCompletion(t *testing.T) {
	b := setup(t)
	for _, name := range []string{".b", ".a", ".a\x1b[31m"} {
		b.fine("schedule", "-t", b.topic+name, "--id", "x", "--in", "1h")
	}
	both := []string{b.topic + ".a", b.topic + ".b"}
	for _, command := range [][]string{
		{"ls"},
		{"schedule"},
		{"get"},
		{"cancel"},
		{"node"},
		{"stats"},
		{"doctor"},
		{"pause"},
		{"resume"},
		{"retune"},
		{"reschedule"},
		{"run-now"},
		{"dead", "ls"},
		{"dead", "show"},
		{"dead", "redrive"},
		{"dead", "rm"},
	} {
		b.offers(both, append(command, "--topic", b.topic)...)
	}
	b.offers(both, "node", "-t", b.topic+".a", "-t", b.topic+".")
	b.offers([]string{".a", ".b"}, "ls", "--prefix", b.topic, "-t", "") // without the prefix, as in --topic

	offered, directive := b.completions("get", "-t", both[0], "")
	require.Empty(t, offered, "ids are not completed")
	require.Equal(t, noFiles, directive)
	offered, _ = b.completions("dead", "")
	require.Equal(t, []string{"ls", "redrive", "rm", "show"}, offered)
	offered, _ = b.completions("ls", "-o", "")
	require.Equal(t, []string{"table", "json"}, offered)
	offered, _ = b.completions("schedule", "--if-exists", "")
	require.Equal(t, []string{"replace", "keep", "earliest"}, offered)
	for _, flag := range []string{"--file", "--tls-ca", "--tls-cert", "--tls-key"} {
		_, directive = b.completions("schedule", flag, "")
		require.Equal(t, files, directive, flag)
	}
}

// Completion returns nothing, within a second or so, if Redis is down or hangs.
func TestCompletionWithoutRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Pause()
	for _, where := range []string{
		"redis://" + server.Addr + "?read_timeout=1500ms&max_retries=-1",
		"redis://127.0.0.1:1?max_retries=-1", "http://x", "redis://:secret@host:port",
	} {
		b := &bundle{t: t, redis: where}
		began := time.Now()
		code, stdout, stderr := b.call("__complete", "ls", "--topic", "")
		require.Equal(t, cli.ExitOK, code)
		require.Equal(t, noFiles+"\n", stdout)
		require.NotContains(t, stderr, "secret")
		require.NotContains(t, stderr, "wakebell:")
		require.Less(t, time.Since(began), waitLimit)
	}
	server.Resume()
}

func TestCompletionScripts(t *testing.T) {
	b := setup(t)
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		require.Contains(t, b.fine("completion", shell), "__complete")
	}
}
