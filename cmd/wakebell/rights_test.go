package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

func TestRightsCheck(t *testing.T) {
	b := setup(t)
	file := filepath.Join(t.TempDir(), "rights")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write("# who\nbilling schedule,read topic:invoices.*\nops * *\n")
	require.Equal(t, "5 patterns\n", b.fine("rights", "check", "--file", file))
	require.Equal(t, "allowed by line 2\n", b.fine("rights", "check", "--file", file, "billing", "schedule", "topic:invoices.eu"))
	require.JSONEq(t, `{"principal":"ops","action":"operate","kind":"gate","name":"a:b","allowed":true,"line":3}`,
		b.fine("rights", "check", "--file", file, "-o", "json", "ops", "operate", "gate:a:b"))
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{cli.ExitError, `"billing" may not operate topic:invoices.eu`, []string{"billing", "operate", "topic:invoices.eu"}},
		{cli.ExitUsage, `"reed", want one of schedule, handle, read, operate`, []string{"billing", "reed", "topic:invoices.eu"}},
		{cli.ExitUsage, `"invoices.eu", want one of topic:`, []string{"billing", "read", "invoices.eu"}},
		{cli.ExitUsage, "2 arguments", []string{"billing", "read"}},
	} {
		code, _, stderr := b.call(append([]string{"rights", "check", "--file", file}, c.args...)...)
		require.Equal(t, c.code, code, stderr)
		require.Contains(t, stderr, c.says)
	}
	write("billing\n\nops reed *\n")
	code, _, stderr := b.call("rights", "check", "--file", file)
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, stderr, "line 1: ")
	require.Contains(t, stderr, "line 3: ")
}

func TestRightsAreChangedWhileNodeRuns(t *testing.T) {
	b := setup(t)
	tokens, file := tokenFile(t, "a:"+secret), filepath.Join(t.TempDir(), "rights")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write("a * topic:*\n")
	node := b.start("node", "--listen", "127.0.0.1:0", "--token-file", tokens, "--rights", file)
	b.fine("schedule", "-t", "TOPIC", "--in", "1h")
	list := func() (int, string) {
		code, _, stderr := b.plainly("--remote", node.listener(), "--token-file", tokenFile(t, secret), "ls", "-t", "TOPIC")
		return code, stderr
	}
	code, stderr := list()
	require.Zero(t, code, stderr)
	write("a raed topic:*\n")
	node.says("changed rights cannot be used")
	code, stderr = list()
	require.Zero(t, code, stderr)
	write("a read topic:another\n")
	node.says("rights were read again")
	code, stderr = list()
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stderr, `"a" may not read topic`)
}
