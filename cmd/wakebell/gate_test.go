package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/gate"
)

// fence formats the token of a line of JSON.
func fence(of any) string { return strconv.FormatFloat(of.(float64), 'f', 0, 64) }

func TestGateHold(t *testing.T) {
	b := setup(t)
	lines := objects(t, b.fine("gate", "hold", "TOPIC", "--for", "0s", "--times", "3"))
	require.Len(t, lines, 6)
	var last float64
	for i, line := range lines {
		require.Equal(t, []any{"acquired", "released"}[i%2], line["event"])
		require.Equal(t, b.topic, line["gate"])
		require.NotEmpty(t, line["at"])
		fence := line["fence"].(float64)
		if i%2 == 0 {
			require.Greater(t, fence, last, "tokens only increase")
		} else {
			require.InDelta(t, last, fence, 0)
		}
		last = fence
	}
}

func TestGateExecReceivesFence(t *testing.T) {
	b := setup(t)
	file := filepath.Join(t.TempDir(), "fence")
	lines := objects(t, b.fine("gate", "hold", "TOPIC", "--exec", "printf '%s %s' $WAKEBELL_FENCE $WAKEBELL_GATE >"+file))
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, fence(lines[0]["fence"])+" "+b.topic, string(got))

	code, stdout, stderr := b.call("gate", "hold", "TOPIC", "--exec", "echo no luck >&2; exit 7")
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stderr, "exit status 7: no luck")
	require.Equal(t, "released", objects(t, stdout)[1]["event"])
}

// A signal ends the wait or the turn. Both ways the next waiter gets the turn.
func TestGateHoldEndsWithSignal(t *testing.T) {
	b := setup(t)
	confirmed := []string{"gate", "hold", "TOPIC", "--signal-ttl", "1m"} // however slow this machine is
	holder := b.start(confirmed...)
	fence := holder.lines(1)[0]["fence"].(float64)
	waiter := b.start(confirmed...)
	waiter.eventually(func() bool { return strings.Contains(b.fine("gate", "show", "TOPIC"), "waiter") })
	shown := objects(t, b.fine("gate", "show", "TOPIC", "-o", "json"))[0]
	require.InDelta(t, fence, shown["fence"], 0)
	since, err := time.Parse(time.RFC3339, shown["since"].(string))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), since, time.Minute)
	require.InDelta(t, 1, shown["waiting"], 0)
	require.Contains(t, b.fine("gate", "ls", "--limit", "0"), b.topic)

	code, _, stderr := b.call("gate", "hold", "TOPIC", "--timeout", "20ms")
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stderr, "timed out waiting for the turn")

	require.Zero(t, holder.stop())
	require.Equal(t, "released", holder.lines(2)[1]["event"])
	require.Greater(t, waiter.lines(1)[0]["fence"], fence)
	unlucky := b.start(confirmed...)
	unlucky.eventually(func() bool { return strings.Contains(b.fine("gate", "show", "TOPIC"), "waiter") })
	require.Zero(t, unlucky.stop())
	require.Empty(t, unlucky.out.String())
	require.Zero(t, waiter.stop())
	require.NotContains(t, b.fine("gate", "ls", "--limit", "0"), b.topic)
}

func TestGateIsReleasedByForce(t *testing.T) {
	b := setup(t)
	code, _, stderr := b.call("gate", "release", "TOPIC", "--force")
	require.Equal(t, cli.ExitNotFound, code, stderr)
	code, _, _ = b.call("gate", "release", "TOPIC")
	require.Equal(t, cli.ExitUsage, code)
	holder := b.start("gate", "hold", "TOPIC", "--exec", sleeper)
	holder.lines(1)
	group := holder.group()
	require.Contains(t, b.fine("gate", "release", "TOPIC", "--force"), "released")
	require.Equal(t, cli.ExitError, holder.wait(), holder.err)
	require.Equal(t, "lost", holder.lines(2)[1]["event"])
	require.Eventually(t, func() bool { return groupIsGone(group) }, waitLimit, waitTick)
}

func TestGateGuardAndRepair(t *testing.T) {
	b := setup(t)
	code, _, stderr := b.call("gate", "guard", "TOPIC", "db", "8000000000000000")
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stderr, gate.ErrFenceUnknown.Error())
	token := fence(objects(t, b.fine("gate", "hold", "TOPIC", "--for", "0s"))[0]["fence"])
	b.fine("gate", "guard", "TOPIC", "db", token)
	require.Contains(t, b.fine("gate", "show", "TOPIC"), token+"  db")
	code, _, stderr = b.call("gate", "guard", "TOPIC", "db", "7")
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stderr, gate.ErrFenceStale.Error())
	require.NoError(t, b.rdb.HSet(t.Context(), "{gates}:guard:"+b.topic, "db", "9007199254740991").Err())
	repaired := objects(t, b.fine("gate", "repair", "TOPIC"))[0]
	require.InDelta(t, 1, repaired["cleared"], 0)
	require.InDelta(t, repaired["before"], repaired["after"], 0)
	repaired = objects(t, b.fine("gate", "repair", "TOPIC", "--floor", "8000000000000000"))[0]
	require.InDelta(t, 8e15, repaired["after"], 0)
	line := objects(t, b.fine("gate", "hold", "TOPIC", "--for", "0s"))[0]
	require.Greater(t, line["fence"], 8e15)

	b.fine("gate", "guard", "TOPIC.elsewhere", "db", token, "--elsewhere")
	code, _, _ = b.call("gate", "guard", "TOPIC.elsewhere", "db", "8000000000000000", "--elsewhere")
	require.Equal(t, cli.ExitError, code)
}

func TestGateIsRemoved(t *testing.T) {
	b := setup(t)
	rm := func(code int, says string, more ...string) {
		t.Helper()
		got, _, stderr := b.call(append([]string{"gate", "rm", "TOPIC"}, more...)...)
		require.Equal(t, code, got, stderr)
		require.Contains(t, stderr, says)
	}
	rm(cli.ExitUsage, "--yes")
	rm(cli.ExitNotFound, "no such gate", "--yes")
	// A gate with tokens that are too high can be removed.
	b.fine("gate", "repair", "TOPIC", "--floor", "8000000000000000")
	require.Greater(t, objects(t, b.fine("gate", "hold", "TOPIC", "--for", "0s"))[0]["fence"], 8e15)
	require.Equal(t, true, objects(t, b.fine("gate", "rm", "TOPIC", "--yes", "-o", "json"))[0]["removed"])

	holder := b.start("gate", "hold", "TOPIC", "--exec", sleeper)
	require.Less(t, holder.lines(1)[0]["fence"], 8e15)
	rm(cli.ExitError, "--force", "--yes")
	require.Contains(t, b.fine("gate", "rm", "TOPIC", "--yes", "--force"), "removed")
	require.Equal(t, cli.ExitError, holder.wait(), holder.err)
	require.Equal(t, "lost", holder.lines(2)[1]["event"])
}

// Gates with other keys are independent.
func TestGateKeys(t *testing.T) {
	b := setup(t)
	keys := []string{
		"--keys", "stream={q}:tickets,group=workers,signal={q}:signal,state={q}:state", "--keys",
		"guard={q}:guard,exchange={q}:exchange,presence={q}:presence,deadlines={q}:deadlines,mark={q}:mark",
	}
	holder := b.start(append([]string{"gate", "hold", "TOPIC", "--signal-ttl", "1s"}, keys...)...)
	fence := holder.lines(1)[0]["fence"].(float64)
	shown := objects(t, b.fine(append([]string{"gate", "show", "TOPIC", "-o", "json"}, keys...)...))[0]
	require.InDelta(t, fence, shown["fence"], 0)
	require.Contains(t, b.fine(append([]string{"gate", "ls"}, keys...)...), b.topic)
	code, _, _ := b.call("gate", "show", "TOPIC", "-o", "json")
	require.Equal(t, cli.ExitNotFound, code, "there is none under the default keys")
	require.Zero(t, holder.stop())

	for _, wrong := range [][]string{{"--keys", "streams=x"}, {"--keys", "stream="}, {"--keys", "stream"}, {"--lease", "0s"}} {
		code, _, _ := b.call(append([]string{"gate", "hold", "TOPIC", "--for", "0s"}, wrong...)...)
		require.Equal(t, cli.ExitUsage, code, wrong)
	}
	code, _, stderr := b.call("gate", "hold", "TOPIC", "--for", "0s", "--signal-ttl", "1ms")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, stderr, "SignalTTL")
}
