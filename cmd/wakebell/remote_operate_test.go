package main

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

// over is a node that listens, and the flags to reach it.
type over struct {
	*bundle
	at []string
}

func (b *bundle) over(node *running, flags ...string) *over {
	return &over{b, append([]string{"--remote", node.listener()}, flags...)}
}

// Does runs a command over the node, which must succeed.
func (o *over) Does(args ...string) string {
	o.t.Helper()
	code, stdout, stderr := o.plainly(append(slices.Clone(o.at), args...)...)
	require.Zero(o.t, code, stderr)
	return stdout
}

// same runs a command over the node and on Redis, and requires equal output.
func (o *over) same(args ...string) string {
	o.t.Helper()
	answer := o.Does(args...)
	require.Equal(o.t, o.fine(args...), answer)
	return answer
}

// sameWithin is same for output that changes at each minute: it counts if Redis gives the same
// before and after.
func (o *over) sameWithin(args ...string) {
	o.t.Helper()
	for {
		before, answer := o.fine(args...), o.Does(args...)
		if o.fine(args...) == before {
			require.Equal(o.t, before, answer)
			return
		}
	}
}

// fails runs a command over the node, which must end with a code.
func (o *over) fails(code int, args ...string) (stderr string) {
	o.t.Helper()
	got, _, stderr := o.plainly(append(slices.Clone(o.at), args...)...)
	require.Equal(o.t, code, got, stderr)
	return stderr
}

// linesOf returns the lines of a listing with the bundle's topic.
func (b *bundle) linesOf(listing string) string {
	var lines strings.Builder
	for line := range strings.Lines(listing) {
		if strings.Contains(line, b.topic) {
			lines.WriteString(line)
		}
	}
	require.NotEmpty(b.t, lines.String(), listing)
	return lines.String()
}

// Commands of operators on topics work over a node.
func TestOverridesOverNode(t *testing.T) {
	b := setup(t)
	o := b.over(b.start("node", "--listen", "127.0.0.1:0"))
	require.Contains(t, o.Does("pause", "-t", "TOPIC", "--by", "ann", "--reason", "the bank is down"), "ann")
	o.Does("schedule", "-t", "TOPIC", "--id", "x", "--in", "1h")
	require.Contains(t, o.same("explain", "TOPIC", "x", "-o", "json"), "its topic is paused by ann: the bank is down")
	o.sameWithin("forecast", "-t", "TOPIC")
	o.Does("cancel", "-t", "TOPIC", "x")
	o.same("retune", "-t", "TOPIC", "-o", "json")
	retuned := o.Does("retune", "-t", "TOPIC", "--max-concurrent", "2", "--max-lease-age", "0s", "--retry-max", "1h", "-o", "json")
	require.Contains(t, retuned, `"settings":{"max_concurrent":2,"max_lease_age":"0s","retry_max":"1h0m0s"}`)
	require.Equal(t, retuned, o.same("retune", "-t", "TOPIC", "-o", "json"))
	require.Contains(t, o.fails(cli.ExitUsage, "retune", "-t", "TOPIC", "--max-concurrent", "-1"), "max_concurrent")
	o.Does("resume", "-t", "TOPIC")
	o.Does("retune", "-t", "TOPIC", "--clear")

	o.Does("schedule", "-t", "TOPIC", "--id", "n", "--count", "20", "--in", "1h")
	for _, listing := range [][]string{{"topics"}, {"topics", "--discover", "-o", "json"}} {
		require.Equal(t, b.linesOf(b.fine(listing...)), b.linesOf(o.Does(listing...)))
	}
	require.Contains(t, b.linesOf(o.Does("stats")), "20")
	code, found, _ := o.plainly(append(slices.Clone(o.at), "doctor", "-t", "TOPIC")...)
	wantCode, want, _ := b.call("doctor", "-t", "TOPIC")
	require.Equal(t, wantCode, code)
	require.Equal(t, b.linesOf(want), b.linesOf(found))
	require.Eventually(t, func() bool { // completion omits topics that it does not find in time
		return strings.HasPrefix(o.Does("__complete", "ls", "--topic", b.topic), b.topic+"\n")
	}, waitLimit, waitTick)
	require.Contains(t, o.Does("cancel", "-t", "TOPIC", "--all", "--yes"), "cancelled 20")
}

func TestDeadLettersOverNode(t *testing.T) {
	b := setup(t)
	entries := b.dies(5)
	o := b.over(b.start("node", "--listen", "127.0.0.1:0"))
	o.same("dead", "ls", "-t", "TOPIC", "-o", "json")
	o.same("dead", "ls", "-t", "TOPIC", "--reason", "no: x-1", "--newer-than", "1h")
	o.same("dead", "show", "-t", "TOPIC", entries[0], "-o", "json")
	o.same("tail", "-t", "TOPIC", "-n", "2", "-o", "json")
	o.fails(cli.ExitNotFound, "dead", "show", "-t", "TOPIC", "1-1")
	redriven := o.Does("dead", "redrive", "-t", "TOPIC", entries[0], "--in", "1h")
	require.Contains(t, redriven, "redriven")
	require.Contains(t, b.fine("get", "-t", "TOPIC", "x-0"), "pending")
	o.fails(cli.ExitNotFound, "dead", "redrive", "-t", "TOPIC", entries[0])
	all := o.Does("dead", "redrive", "-t", "TOPIC", "--all", "--rate", "10000", "--in", "1h", "--yes")
	require.Equal(t, 4, strings.Count(all, "redriven"))
	require.Contains(t, o.Does("dead", "rm", "-t", "TOPIC", "--all", "--yes"), "deleted 0")
}

// Tail prints the events of a topic over a node until it is stopped.
func TestTailOverNode(t *testing.T) {
	b := setup(t)
	node := b.start("node", "-t", "TOPIC", "--exec", "true", "--listen", "127.0.0.1:0")
	at := b.over(node)
	var out buffer
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append(at.at, "tail", "-t", b.topic, "-f", "-n", "0", "-o", "json"), strings.NewReader(""), &out, &bytes.Buffer{})
	}()
	node.eventually(func() bool { return strings.Contains(out.String(), `"event":"node"`) })
	at.Does("schedule", "-t", "TOPIC", "--id", "x")
	node.eventually(func() bool { return strings.Contains(out.String(), `"event":"acked"`) })
	require.Equal(t, b.topic, objects(t, out.String())[0]["topic"])
	cancel()
	require.Zero(t, <-ended)
}

// A client that is not an operator may only schedule.
func TestOperatorsOfNode(t *testing.T) {
	b := setup(t)
	tokens := tokenFile(t, "ops: "+secret, "billing:another-of-sixteen-bytes")
	node := b.start("node", "--listen", "127.0.0.1:0", "--token-file", tokens, "--operators", "ops")
	ops := b.over(node, "--token-file", tokenFile(t, secret))
	billing := b.over(node, "--token-file", tokenFile(t, "another-of-sixteen-bytes"))
	billing.Does("schedule", "-t", "TOPIC", "--id", "x", "--in", "1h")
	for _, command := range [][]string{{"pause", "-t", "TOPIC"}, {"dead", "ls", "-t", "TOPIC"}, {"topics"}} {
		require.Contains(t, billing.fails(cli.ExitError, command...), "not an operator")
		ops.Does(command...)
	}
}
