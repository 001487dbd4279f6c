//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/wakebelltype"
)

// write writes a configuration file in which TOPIC is the bundle's topic.
func (b *bundle) write(path, text string) {
	b.t.Helper()
	text = strings.ReplaceAll(text, "TOPIC", b.topic)
	require.NoError(b.t, os.WriteFile(path, []byte(text), 0o600))
}

func TestNodeWithConfigurationFile(t *testing.T) {
	t.Parallel()
	path := redistest.Program(t)

	t.Run("reloads it on SIGHUP", func(t *testing.T) {
		b := setup(t)
		file := filepath.Join(t.TempDir(), "wakebell.yaml")
		b.write(file, `
topics:
  TOPIC-a: {exec: "echo first $WAKEBELL_ID >&2", max-concurrent: 1}
  TOPIC-b:
queues:
  TOPIC-q: {exec: echo message >&2}
`)
		cmd, node := b.process(path, nil, "node", "--config", file)
		node.says("node runs")
		b.fine("schedule", "-t", b.topic+"-a", "--id", "one")
		b.fine("queue", "publish", "--queue", b.topic+"-q", "--text", "hello")
		node.says("first one")
		node.says("message")

		b.write(file, `
drain-timeout: 3s
log-level: debug
topics:
  TOPIC-a: {exec: "echo second $WAKEBELL_ID >&2", max-concurrent: 7}
  TOPIC-c: {exec: echo third >&2}
queues:
  TOPIC-q: {exec: echo message >&2, completed: 5}
`)
		require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
		node.says("setting needs a restart; keeping the previous value\" field=drain-timeout from=20s to=3s")
		node.says("field=log-level from=info to=debug")
		node.says("field=max-concurrent from=1 to=7")
		node.says(`msg="topic added" topic=` + b.topic + "-c")
		node.says(`msg="topic removed" topic=` + b.topic + "-b")
		node.says("field=completed from=0 to=5")
		b.fine("schedule", "-t", b.topic+"-a", "--id", "two")
		node.says("second two")
		b.fine("schedule", "-t", b.topic+"-c", "--id", "x")
		node.says("third")
		b.fine("queue", "publish", "--queue", b.topic+"-q", "--text", "again")
		node.eventually(func() bool { return b.rdb.LLen(t.Context(), b.topic+"-q::completed").Val() == 1 })

		b.write(file, "topics: {x: {max-concurrency: 3}}")
		require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
		node.says("changed configuration cannot be used; keeping the previous one")
		node.says(`did you mean \"max-concurrent\"?`)
		b.fine("schedule", "-t", b.topic+"-a", "--id", "three")
		node.says("second three")

		b.write(file, "")
		require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
		node.says("changed configuration has no topics and queues; keeping the previous one")
		b.write(file, "topics: {TOPIC-a: {exec: ./nonexistent.sh}}")
		require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
		node.says("configuration cannot be applied")
		require.NoError(t, os.Remove(file))
		require.NoError(t, syscall.Mkfifo(file, 0o600))
		require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
		node.says("is not a regular file")
		b.fine("schedule", "-t", b.topic+"-a", "--id", "four")
		node.says("second four")
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.Zero(t, node.wait())
	})

	t.Run("lets flags and variables precede it", func(t *testing.T) {
		b := setup(t)
		file := filepath.Join(t.TempDir(), "wakebell.yaml")
		b.write(file, `
exec: echo general >&2
health: 127.0.0.1:1
max-attempts: 3
retry-initial: 10ms
topics:
  TOPIC: {max-attempts: 5, retry-max: 20ms, exec: "echo attempt $WAKEBELL_ATTEMPT >&2; exit 1"}
  TOPIC-left-out: {}
`)
		node := exec.Command(path, b.args([]string{"node", "--config", file, "--health", "127.0.0.1:0", "-t", "TOPIC"})...)
		node.Env = append(os.Environ(), "WAKEBELL_NODE_MAX_ATTEMPTS=2")
		log := &buffer{}
		node.Stderr = log
		require.NoError(t, node.Start())
		t.Cleanup(func() { _ = node.Process.Kill() }) // it may have ended already
		b.fine("schedule", "-t", "TOPIC", "--id", "x")
		require.Eventually(t, func() bool {
			return len(objects(t, b.fine("dead", "ls", "-t", "TOPIC", "-o", "json"))) == 1
		}, waitLimit, waitTick, log)
		require.NoError(t, node.Process.Signal(syscall.SIGTERM))
		require.NoError(t, node.Wait())
		require.Contains(t, log.String(), "attempt 2")
		require.NotContains(t, log.String(), "attempt 3")
		require.NotContains(t, log.String(), "left-out")
	})
}

func TestConfigCheck(t *testing.T) {
	b := setup(t)
	file := filepath.Join(t.TempDir(), "wakebell.yaml")
	for _, c := range []struct{ name, text, says string }{
		{"valid", "topics: {a: {exec: x, max-concurrent: 7}, b: null}\nqueues: [q]\n", ""},
		{"unknown field", "topics:\n  a: {max-concurency: 7}\n", `:2: topics.a.max-concurency: unknown field; did you mean "max-concurrent"?`},
		{"unknown section", "topic: {a: {}}\n", ":1: topic: "},
		{"wrong value", "\nlog-level: loud\n", `:2: log-level: "loud", want one of info, debug`},
		{"out of bounds", "topics:\n  a:\n    exec: x\n    lease-ttl: 1ms\n", ":4: topics.a.lease-ttl: LeaseTTL: 1ms is not within 100ms and 24h0m0s"},
		{"out of bounds for all", "topics: [a]\nmax-attempts: 0\n", ":2: max-attempts: MaxAttempts: 0 is not within 1 and"},
		{"out of bounds of the node", "drain-timeout: 5h\ntopics: [a]\n", ":1: drain-timeout: DrainTimeout: 5h0m0s is not within"},
		{"contradiction", "topics: {a: {polling-interval: 2s, max-polling-interval: 1s}}\n", ":1: topics.a: MaxPollingInterval: 1s is below"},
		{"topic and queue", "topics: [a]\nqueues: [a]\n", ":2: queues.a: twice"},
		{"field of a topic in a queue", "queues: {a: {lease-ttl: 1m}}\n", ":1: queues.a.lease-ttl: unknown field"},
		{"field of a queue in a topic", "topics: {a: {max-deliveries: 3}}\n", ":1: topics.a.max-deliveries: unknown field"},
		{"listener's field without one", "operators: ops\ntopics: [a]\n", "--operators, --rights and --peer-queues go with --listen"},
		{"half a certificate", "listen: 127.0.0.1:0\ntls-cert: a.pem\n", "--tls-cert and --tls-key go together"},
		{"authorities without a certificate", "listen: 127.0.0.1:0\ntls-client-ca: a.pem\n", "--tls-client-ca goes with --tls-cert"},
		{"empty name", "topics: {'': {}}\n", ":1: topics.: topic: empty"},
		{"not YAML", "topics: [a\n", "did not find expected"},
	} {
		b.write(file, c.text)
		code, stdout, stderr := b.call("config", "check", file)
		if c.says == "" {
			require.Zero(t, code, stderr)
			require.Contains(t, stdout, "is valid: 2 topics, 1 queues")
			continue
		}
		require.Equal(t, cli.ExitUsage, code, c.name)
		require.Contains(t, stderr, file, c.name)
		require.Contains(t, stderr, c.says, c.name)
		code, _, stderr = b.call("node", "--config", file)
		require.Equal(t, cli.ExitUsage, code, c.name)
		require.Contains(t, stderr, c.says, c.name)
	}
	code, _, stderr := b.call("node", "--config", file+".missing")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, stderr, "no such file")
}

// What config print prints is a file with the same fields.
func TestConfigPrintIsReadAgain(t *testing.T) {
	b := setup(t)
	file := filepath.Join(t.TempDir(), "wakebell.yaml")
	require.NoError(t, os.WriteFile(file, []byte(b.fine("config", "print")), 0o600))
	b.fine("config", "check", file)

	b.write(file, "redis: redis://ann:pa55@localhost\noperators: [a, b]\nmax-lease-age: 1h\ntopics: {'a: b': {exec: \"one\\ntwo\", history: all}, '5':}\nqueues: {q: {completed: 5}}\n")
	printed := b.fine("config", "print", file)
	require.Contains(t, printed, "\nredis: redis://ann:xxxxx@localhost\n")
	require.NotContains(t, printed, "pa55")
	require.Contains(t, printed, "\noperators: a,b\n")
	require.Contains(t, printed, "\n# drain-timeout: 20s\n")
	require.NoError(t, os.WriteFile(file, []byte(printed), 0o600))
	require.Equal(t, printed, b.fine("config", "print", file))
	for _, row := range tuning.All {
		require.Contains(t, printed, row.Flag+": ", "each setting is a field")
	}
}

// A flag of a setting is accepted because of its row in the table; what it says must hold too.
func TestNodeAppliesFlagsOfAllSettings(t *testing.T) {
	b := setup(t)
	var want wakebelltype.Settings
	args := []string{"node", "-t", "TOPIC"}
	for _, row := range tuning.All {
		value := int64(3)
		if row.Duration(&want) != nil {
			value = int64(7 * time.Second)
		}
		row.Set(&want, value)
		args = append(args, "--"+row.Flag, row.Text(value))
	}
	node := b.start(args...)
	c, found := b.Client(), []wakebelltype.Overview(nil)
	node.eventually(func() bool {
		var err error
		found, err = c.Overview(t.Context(), b.topic)
		return err == nil && len(found[0].Reports) == 1
	})
	require.Equal(t, want, found[0].Reports[0].State.Options)
}

// The schema on the site is that of this program.
func TestConfigSchema(t *testing.T) {
	b := setup(t)
	published, err := os.ReadFile(filepath.Join("..", "..", "docs", "public", "wakebell.schema.json"))
	require.NoError(t, err)
	require.Equal(t, string(published), b.fine("config", "schema"), "run `make generate`")
}
