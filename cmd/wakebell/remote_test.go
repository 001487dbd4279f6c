package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote"
)

const secret = "a-token-of-sixteen-bytes"

var listensAt = regexp.MustCompile(`node runs.*listener=(\S+)`)

// listener returns the address at which a node listens.
func (r *running) listener() string {
	r.t.Helper()
	r.eventually(func() bool { return listensAt.MatchString(r.err.String()) })
	return listensAt.FindStringSubmatch(r.err.String())[1]
}

// tokenFile writes a file that only its owner may read.
func tokenFile(t *testing.T, lines ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600))
	return file
}

// plainly runs a command without --redis; TOPIC stands for the bundle's topic.
func (b *bundle) plainly(args ...string) (code int, stdout, stderr string) {
	b.t.Helper()
	var out, errs bytes.Buffer
	code = run(b.t.Context(), b.args(args)[2:], strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// Commands on topics have the same output over a node and on Redis.
func TestCommandsOverNode(t *testing.T) {
	b := setup(t)
	tokens := tokenFile(t, "# ours", "", "ops: "+secret, "billing:another-of-sixteen-bytes")
	node := b.start("node", "--listen", "127.0.0.1:0", "--token-file", tokens)
	at := []string{"--remote", node.listener(), "--token-file", tokenFile(t, secret)}
	over := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := b.plainly(append(at, args...)...)
		require.Zero(t, code, stderr)
		require.Empty(t, stderr)
		return stdout
	}
	same := func(args ...string) string {
		t.Helper()
		answer := over(args...)
		require.Equal(t, b.fine(args...), answer)
		return answer
	}

	code, stdout, stderr := b.plainly(append(at, "schedule", "-t", "TOPIC", "--id", "x", "--in", "1h", "--json", `{"n":1}`, "--header", "k=v")...)
	require.Zero(t, code, stderr)
	require.Equal(t, "x\n", stdout)
	require.Contains(t, stderr, "has no timers, and no node handles it", "a new topic")
	require.Contains(t, same("ls", "-t", "TOPIC", "--search", "v", "--content", "-o", "json"), `"id":"x"`)
	require.Contains(t, same("get", "-t", "TOPIC", "x", "-o", "json"), `"headers":{"k":"v"}`)
	over("schedule", "-t", "TOPIC", "--id", "n", "--count", "1001", "--at", "2099-01-02T15:04:05Z")
	require.Equal(t, 1002, strings.Count(same("ls", "-t", "TOPIC", "--limit", "0", "-o", "json"), "\n"))
	require.Contains(t, over("reschedule", "-t", "TOPIC", "x", "--at", "2031-01-02T15:04:05Z"), "2031-01-02T15:04:05Z")
	require.Contains(t, same("get", "-t", "TOPIC", "x"), "2031-01-02T15:04:05Z")
	b.fine("pause", "-t", "TOPIC")
	stats := objects(t, over("stats", "-t", "TOPIC", "-o", "json"))[0]
	require.InDelta(t, 1002, stats["timers"], 0)
	require.Equal(t, true, stats["paused"])
	require.Contains(t, over("run-now", "-t", "TOPIC", "n-0"), "pending")
	require.Contains(t, over("cancel", "-t", "TOPIC", "x"), "pending")
	code, _, stderr = b.plainly(append(at, "cancel", "-t", "TOPIC", "x")...)
	require.Equal(t, cli.ExitNotFound, code, stderr)

	require.Zero(t, node.stop(), node.err)
	code, _, stderr = b.plainly(append(at, "get", "-t", "TOPIC", "n-1")...)
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stderr, "connection refused")
}

// Commands on schedules, queues and gates have the same output over a node and on
// Redis.
func TestMoreCommandsOverNode(t *testing.T) {
	b := setup(t)
	node := b.start("node", "--listen", "127.0.0.1:0")
	at := []string{"--remote", node.listener()}
	over := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := b.plainly(append(at, args...)...)
		require.Zero(t, code, stderr)
		return stdout
	}
	name := b.topic + "-nightly"
	over("schedules", "put", name, "-t", "TOPIC", "--cron", "30 2 * * *")
	require.Contains(t, over("schedules", "ls"), name)
	show := over("schedules", "show", name)
	require.Equal(t, b.fine("schedules", "show", name), show)
	require.Equal(t, b.fine("schedules", "preview", name), over("schedules", "preview", name))
	over("schedules", "pause", name)
	require.NotEqual(t, show, b.fine("schedules", "show", name))
	over("schedules", "resume", name)
	require.Contains(t, over("schedules", "run-now", name), name)
	over("schedules", "rm", name, "--yes")
	code, _, stderr := b.plainly(append(at, "schedules", "show", name)...)
	require.Equal(t, cli.ExitNotFound, code, stderr)

	over("queue", "publish", "--queue", "TOPIC", "--text", "hello", "--dedup-key", "k")
	require.Contains(t, over("queue", "publish", "--queue", "TOPIC", "--text", "hello", "--dedup-key", "k"), "duplicate")
	require.Contains(t, b.fine("queue", "ls", "--queue", "TOPIC"), "pending")

	held := objects(t, over("gate", "hold", "TOPIC", "--for", "0s", "--lease", "20s"))
	require.Equal(t, "acquired", held[0]["event"])
	require.Equal(t, "released", held[1]["event"])
	over("gate", "guard", "TOPIC", "bucket", fence(held[0]["fence"]))
	for _, refused := range []string{"6", "9007199254740991"} {
		code, _, stderr = b.plainly(append(at, "gate", "guard", "TOPIC", "bucket", refused)...)
		require.Equal(t, cli.ExitError, code, stderr)
	}
}

func TestWrongTokenIsRefused(t *testing.T) {
	b := setup(t)
	node := b.start("node", "--listen", "127.0.0.1:0", "--token-file", tokenFile(t, secret))
	for _, with := range [][]string{{}, {"--token-file", tokenFile(t, "not-"+secret)}} {
		code, _, stderr := b.plainly(append(with, "--remote", node.listener(), "ls", "-t", "TOPIC")...)
		require.Equal(t, cli.ExitError, code)
		require.Contains(t, stderr, "credentials are rejected")
		require.NotContains(t, stderr, secret)
	}
}

func TestTokensAreChangedWhileNodeRuns(t *testing.T) {
	b := setup(t)
	tokens := tokenFile(t, "a:"+secret)
	node := b.start("node", "--listen", "127.0.0.1:0", "--token-file", tokens)
	b.fine("schedule", "-t", "TOPIC", "--in", "1h")
	with := func(token string) int {
		code, _, _ := b.plainly("--remote", node.listener(), "--token-file", tokenFile(t, token), "ls", "-t", "TOPIC")
		return code
	}
	require.Zero(t, with(secret))
	require.Equal(t, cli.ExitError, with("next-"+secret))
	require.NoError(t, os.WriteFile(tokens, []byte("no token at all:\n"), 0o600))
	node.says("changed tokens cannot be used")
	require.Zero(t, with(secret))
	require.NoError(t, os.WriteFile(tokens, []byte("a:next-"+secret+"\n"), 0o600))
	node.says("tokens were read again")
	require.Zero(t, with("next-"+secret))
	require.Equal(t, cli.ExitError, with(secret))
}

func TestCommandsThatNeedRedisRefuseRemote(t *testing.T) {
	t.Parallel()
	b := &bundle{t: t, topic: "x"}
	for _, command := range []string{"node -t x", "beat", "bench", "demo", "topics export x", "topics import", "topics move x --abort", "repair x"} {
		code, _, stderr := b.plainly(append([]string{"--remote", "127.0.0.1:1"}, strings.Fields(command)...)...)
		require.Equal(t, cli.ExitUsage, code, command)
		require.Contains(t, stderr, "needs Redis itself: give --redis instead of --remote", command)
	}
}

func TestFlagsThatDoNotGoTogether(t *testing.T) {
	t.Parallel()
	b := &bundle{t: t, topic: "x"}
	for command, says := range map[string]string{
		"--remote h:1 --redis redis://h ls -t x":                      "none of the others can be",
		"--remote h:1 --prefix p ls -t x":                             "the node's",
		"--remote h:1 --hash-tag ls -t x":                             "the node's",
		"--remote plain://h:1 --tls-ca f ls -t x":                     "not encrypted",
		"--remote h:1 --tls-cert f ls -t x":                           "go together",
		"--remote h:1 schedules ls --key-prefix x":                    "the node's",
		"--remote h:1 schedules run-now x --celery":                   "the node's",
		"--remote h:1 schedules export --key-prefix x":                "the node's",
		"--remote h:1 gate ls --keys state=y":                         "the node's",
		"--remote h:1 gate hold x --keys state=y":                     "the node's",
		"--redis embedded --token-file f ls -t x":                     "goes with --remote",
		"--redis embedded node -t x --insecure-listen":                "go with --listen",
		"--redis embedded node --listen :1 --tls-cert f":              "go together",
		"--redis embedded node --listen :1 --tls-client-ca f":         "goes with --tls-cert",
		"--redis embedded node --listen 127.0.0.1:nix":                "port",
		"--redis embedded node --listen 0.0.0.0:1":                    "Advertise",
		"--redis embedded node --listen 1.1.1.1:1 --redis-tls-cert f": "not encrypted",
	} {
		code, _, stderr := b.plainly(strings.Fields(command)...)
		require.Equal(t, cli.ExitUsage, code, "%s: %s", command, stderr)
		require.Contains(t, stderr, says, command)
	}
	code, _, stderr := b.plainly("--redis", "embedded", "node", "--listen", "192.0.2.1:7070")
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stderr, "no TLS")
	require.Contains(t, stderr, "--insecure-listen")
}

// A node without topics lets subscribers handle them.
func TestNodeServesSubscribers(t *testing.T) {
	b := setup(t)
	node := b.start("node", "--listen", "127.0.0.1:0", "--max-attempts", "2", "--retry-initial", "10ms")
	c, err := remote.Dial(t.Context(), node.listener(), nil, remote.DialConfig{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	ctx, stop := context.WithCancel(t.Context())
	handled := make(chan string, 1)
	go func() {
		_ = c.Subscribe(ctx, remote.Subscription{Topic: b.topic, Name: "s"}, func(_ context.Context, l *messages.Lease) error {
			handled <- l.GetId()
			return nil
		})
		close(handled)
	}()
	b.fine("schedule", "-t", "TOPIC", "--id", "x")
	require.Equal(t, "x", <-handled)
	stop()
	_, more := <-handled
	require.False(t, more)
	require.Zero(t, node.stop(), node.err)
	require.NotContains(t, node.err.String(), "WARN")
}

func TestNodeFromEnvironment(t *testing.T) { // not parallel: it changes the environment
	b := &bundle{t, redistest.Name(t), "redis://" + redistest.SharedAddr(t), redistest.Shared(t)}
	tokens := tokenFile(t, secret)
	t.Setenv("WAKEBELL_TOKEN_FILE", tokens)
	node := b.start("node", "--listen", "127.0.0.1:0")
	t.Setenv("WAKEBELL_REMOTE", node.listener())
	t.Setenv("WAKEBELL_REDIS", "redis://192.0.2.1:1")
	code, _, stderr := b.plainly("schedule", "-t", "TOPIC", "--id", "x", "--in", "1h")
	require.Zero(t, code, stderr)
	require.Contains(t, b.fine("ls", "-t", "TOPIC"), "pending", "--redis takes precedence over the environment")
	code, _, stderr = b.plainly("bench")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, stderr, "unset WAKEBELL_REMOTE")
}
