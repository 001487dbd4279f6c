//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

func TestExecReceivesDelivery(t *testing.T) {
	b := setup(t)
	dir := t.TempDir()
	_, err := wakebell.NewTopic[[]byte](b.topic).Schedule(t.Context(), b.Client(), []byte("body\x00\xff"),
		wakebell.ID("x"), wakebell.ContentType("image/png"), wakebell.CorrelationID("c"),
		wakebell.Header("x-Tenant.1", "acme\ncorp"), wakebell.Header("nul", "a\x00b"))
	require.NoError(t, err)
	node := b.start("node", "-t", "TOPIC", "--exec", `cd `+dir+`
		cat >body
		for name in TOPIC ID ATTEMPT ACTIVATION DELIVERED_AT LATENESS_MS CONTENT_TYPE CORRELATION_ID REPLY_TO HEADER_X_TENANT_1 HEADER_NUL; do
			eval "printf '%s' \"\${WAKEBELL_$name-unset}\"" >$name
		done
		echo on stdout; echo on stderr >&2; echo ready >&2`)
	node.says("ready")
	node.eventually(func() bool { return b.rdb.ZCard(t.Context(), "timers_timeline:"+b.topic).Val() == 0 })
	line := node.lines(1)[0]
	require.Contains(t, node.err.String(), "on stdout")
	for name, want := range map[string]string{
		"body":              "body\x00\xff",
		"TOPIC":             b.topic,
		"ID":                "x",
		"ATTEMPT":           "1",
		"ACTIVATION":        line["activation"].(string),
		"DELIVERED_AT":      line["delivered_at"].(string),
		"LATENESS_MS":       strconv.FormatFloat(line["lateness_ms"].(float64), 'f', -1, 64),
		"CONTENT_TYPE":      "image/png",
		"CORRELATION_ID":    "c",
		"REPLY_TO":          "",
		"HEADER_X_TENANT_1": "acme\ncorp",
		"HEADER_NUL":        "a\uFFFDb",
	} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, want, string(got), name)
	}
}

func TestExecVerdicts(t *testing.T) {
	b := setup(t)
	for _, id := range []string{"0", "65", "1", "signal", "deaf"} {
		b.fine("schedule", "-t", "TOPIC", "--id", id, "--text", strings.Repeat("x", 100_000))
	}
	node := b.start("node", "-t", "TOPIC", "--retry-initial", "1h", "--exec", `case $WAKEBELL_ID in
		signal) kill -9 $$;;
		deaf) exec <&-; exit 0;; # does not read its body
		*) cat >/dev/null; echo "said $WAKEBELL_ID" >&2; exit $WAKEBELL_ID;;
	esac`)
	node.lines(5)
	node.eventually(func() bool {
		stats, err := b.Client().Stats(t.Context(), b.topic)
		return err == nil && stats.Total == 2 && stats.Dead == 1 && stats.Due == 0
	})
	require.Zero(t, node.stop())
	failures := map[any]any{}
	for _, line := range objects(t, b.fine("ls", "-t", "TOPIC", "-o", "json")) {
		require.Equal(t, "retrying", line["state"])
		failures[line["id"]] = line["last_error"]
	}
	require.Equal(t, map[any]any{"1": "command: exit status 1: said 1", "signal": "command: signal: killed"}, failures)
	dead := objects(t, b.fine("dead", "ls", "-t", "TOPIC", "-o", "json"))
	require.Equal(t, "65", dead[0]["id"])
	require.Equal(t, "exit status 65: said 65", dead[0]["reason"])
}

// group waits for the command to print its process group.
func (r *running) group() int {
	r.t.Helper()
	var group int
	r.eventually(func() bool {
		_, after, found := strings.Cut(r.err.String(), "group ")
		number, _, ended := strings.Cut(after, "\n")
		var err error
		group, err = strconv.Atoi(number)
		return found && ended && err == nil
	})
	return group
}

func groupIsGone(group int) bool { return syscall.Kill(-group, 0) == syscall.ESRCH }

// sleeper starts a child process that keeps the output of the command open.
const sleeper = `echo "group $$" >&2; sleep 1000 & wait`

func TestCancelledCommandIsKilledWithItsChildren(t *testing.T) {
	b := setup(t)
	b.fine("schedule", "-t", "TOPIC", "--id", "x")
	node := b.start("node", "-t", "TOPIC", "--exec", sleeper)
	group := node.group()
	require.Contains(t, b.fine("ls", "-t", "TOPIC", "--running"), "x   running")
	require.Contains(t, b.fine("cancel", "-t", "TOPIC", "x"), "running")
	node.eventually(func() bool { return groupIsGone(group) })
	require.Zero(t, node.stop())
	require.Zero(t, b.rdb.ZCard(t.Context(), "timers_timeline:"+b.topic).Val())
}

func TestRunningTimersAreShownWithTheirNode(t *testing.T) {
	b := setup(t)
	b.fine("schedule", "-t", "TOPIC", "--id", "x")
	node := b.start("node", "-t", "TOPIC", "--exec", sleeper)
	node.group()
	line := objects(t, b.fine("ls", "-t", "TOPIC", "--running", "-o", "json"))[0]
	require.Empty(t, line["node"], "it has not run for long")
	report := `9e9 {"longest":[{"id":"x","attempt":1,"since":"2026-01-02T03:04:05Z"}]}`
	require.NoError(t, b.rdb.HSet(t.Context(), "timers_reports:"+b.topic, "web-1/4711/k3", report).Err())
	line = objects(t, b.fine("ls", "-t", "TOPIC", "--running", "-o", "json"))[0]
	require.Equal(t, "web-1/4711/k3", line["node"])
	require.Equal(t, "2026-01-02T03:04:05Z", line["since"])
	require.Regexp(t, `(?m)^x +running .*web-1/4711$`, b.fine("ls", "-t", "TOPIC", "--running"))
	require.Regexp(t, `(?m)^runs on +web-1/4711$`, b.fine("get", "-t", "TOPIC", "x"))
	require.Regexp(t, `(?m)^now .*web-1/4711`, b.fine("explain", "TOPIC", "x"), "which has not leased it, and may not answer")
	b.fine("cancel", "-t", "TOPIC", "x")
	require.Zero(t, node.stop())
}

func TestDrainKillsSlowCommandsAndReleasesTheirTimers(t *testing.T) {
	b := setup(t)
	b.fine("schedule", "-t", "TOPIC", "--id", "x", "--at", "2021-01-02T00:00:00Z")
	for tries := 1; ; tries++ {
		node := b.start("node", "-t", "TOPIC", "--exec", sleeper, "--drain-timeout", "0")
		group := node.group()
		code := node.stop()
		require.Eventually(t, func() bool { return groupIsGone(group) }, waitLimit, waitTick)
		if code == cli.ExitOK {
			break
		}
		// The node waits 1 s for a killed command, and the machine may stall for as
		// long.
		require.Contains(t, node.err.String(), wakebell.ErrUnfinished.Error())
		require.Less(t, tries, 5, "the node does not wait for a killed command")
	}
	info, _, err := b.Client().Get(t.Context(), b.topic, "x")
	require.NoError(t, err)
	require.Equal(t, 2021, info.Due.UTC().Year(), "in its original order")
	require.Zero(t, info.Failures)
}

func TestTimersWhoseCommandCannotBeRunAreLeftToOtherNodes(t *testing.T) {
	for _, script := range []string{"exec /nonexistent/charge", "exec /dev/null"} { // 127 and 126
		t.Run(script, func(t *testing.T) {
			b := setup(t)
			broken := b.start("node", "-t", "TOPIC", "--exec", script, "--max-attempts", "1", "--history", "all")
			b.fine("schedule", "-t", "TOPIC", "--id", "x", "--count", "50")
			broken.says("command cannot be run")
			sound := b.start("node", "-t", "TOPIC", "--exec", "true", "--max-attempts", "1")
			sound.eventually(func() bool { return b.rdb.ZCard(t.Context(), "timers_timeline:"+b.topic).Val() == 0 })
			require.Zero(t, b.rdb.XLen(t.Context(), "timers_dead:"+b.topic).Val())
			require.Zero(t, broken.stop(), "with a paused topic")
		})
	}
}

func TestNodeDoesNotStartWithCommandThatDoesNotExist(t *testing.T) {
	b := setup(t)
	code, _, stderr := b.call("node", "-t", "TOPIC", "--exec", "./nonexistent.sh --all")
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stderr, `"./nonexistent.sh" is neither an executable file nor a command of the shell`)
}

func TestNodeDoesNotWaitForBackgroundProcesses(t *testing.T) {
	b := setup(t)
	b.fine("schedule", "-t", "TOPIC", "--id", "x")
	node := b.start("node", "-t", "TOPIC", "--exec", `echo "group $$" >&2; sleep 1000 & exit 0`)
	group := node.group()
	t.Cleanup(func() { _ = syscall.Kill(-group, syscall.SIGKILL) }) // kills the sleeper
	node.eventually(func() bool { return b.rdb.ZCard(t.Context(), "timers_timeline:"+b.topic).Val() == 0 })
}
