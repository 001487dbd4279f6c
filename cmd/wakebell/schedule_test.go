package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestScheduleStoresBodiesByKind(t *testing.T) {
	b := setup(t)
	file := filepath.Join(t.TempDir(), "body")
	require.NoError(t, os.WriteFile(file, []byte("\x00file"), 0o600))
	for _, c := range []struct {
		name              string
		args              []string
		contentType, body string
	}{
		{"none", nil, "", ""},
		{"json", []string{"--json", ` {"b": 1.50, "a": [1, 2], "big": 12345678901234567890} `}, "application/json", `{"b":1.50,"a":[1,2],"big":12345678901234567890}`},
		{"null", []string{"--json", "null"}, "application/json", "null"},
		{"text", []string{"--text", "héllo\n"}, "text/plain", "héllo\n"},
		{"empty text", []string{"--text", ""}, "text/plain", ""},
		{"hex", []string{"--hex", "00ff10"}, "", "\x00\xff\x10"},
		{"typed hex", []string{"--hex", "7b7d", "--content-type", "application/json"}, "application/json", "{}"},
		{"file", []string{"--file", file, "--content-type", "image/png"}, "image/png", "\x00file"},
		{"stdin", []string{"--file", "-"}, "", "from stdin"},
	} {
		code, stdout, stderr := b.callWith(strings.NewReader("from stdin"),
			append([]string{"schedule", "-t", "TOPIC", "--id", c.name, "--in", "1h"}, c.args...)...)
		require.Zero(t, code, stderr)
		require.Equal(t, c.name+"\n", stdout)
		_, content, err := b.Client().Get(t.Context(), b.topic, c.name)
		require.NoError(t, err)
		require.Equal(t, c.contentType, content.ContentType, c.name)
		require.Equal(t, c.body, string(content.Body), c.name)
	}
}

func TestScheduleRefuses(t *testing.T) {
	b := setup(t)
	for _, args := range [][]string{
		{"--json", "{broken"},
		{"--json", "\"\xff\""},
		{"--text", "\xff"},
		{"--hex", "0"},
		{"--in", "1h", "--at", "2031-01-02T15:04:05Z"},
		{"--at", "tomorrow"},
		{"--text", "x", "--json", "1"},
		{"--text", "x", "--content-type", "text/html"},
		{"--header", "novalue"},
		{"--header", "content-type=text/html"},
		{"--header", "k=" + strings.Repeat("v", 1<<16)},
		{"--id", ""},
		{"--if-exists", "latest"},
		{"--debounce", "1m"},               // the instant is missing
		{"--in", "1m", "--debounce", "1h"}, // the id is missing
		{"--in", "1m", "--once", "1h"},
		{"--in", "1m", "--debounce", "1s"},
		{"--in", "1m", "--debounce", "1h", "--if-exists", "replace"},
		{"--once", "0s"},
		{"--count", "0"},
		{"--count", "3", "--spacing", "2562047h"},
	} {
		code, stdout, stderr := b.call(append([]string{"schedule", "-t", "TOPIC"}, args...)...)
		require.Equal(t, cli.ExitUsage, code, "%v: %s", args, stderr)
		require.Empty(t, stdout)
	}
	code, _, stderr := b.callWith(strings.NewReader(strings.Repeat("x", wakebell.DefaultPayloadLimit)),
		"schedule", "-t", "TOPIC", "--file", "-")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, stderr, "the limit is 1048576")
	code, _, _ = b.call("schedule", "-t", "TOPIC", "--file", "/nowhere/to/be/found")
	require.Equal(t, cli.ExitError, code)
	require.Zero(t, b.rdb.Exists(t.Context(), "timers_timeline:"+b.topic).Val(), "nothing was written")
}

func TestSchedulePrintsInstantAndOutcome(t *testing.T) {
	b := setup(t)
	at := "2031-01-02T15:04:05.678901Z"
	call := func(more ...string) string {
		return b.fine(append([]string{"schedule", "-t", "TOPIC", "--id", "x", "-o", "json", "--at", at}, more...)...)
	}
	out := call("--header", "k=v=w", "--header", "empty=", "--correlation-id", "c-1")
	out += call("--if-exists", "keep", "--text", "kept")
	_, content, err := b.Client().Get(t.Context(), b.topic, "x")
	require.NoError(t, err)
	require.Empty(t, content.Body)
	require.Equal(t, map[string]string{"k": "v=w", "empty": ""}, content.Headers.Map())
	require.Equal(t, "c-1", content.CorrelationID)
	out += call("--text", "new")
	b.golden("schedule.jsonl", out)
}

func TestSchedulePolicies(t *testing.T) {
	b := setup(t)
	outcome := func(args ...string) string {
		out := b.fine(append([]string{"schedule", "-t", "TOPIC", "-o", "json", "--id", "x"}, args...)...)
		return objects(t, out)[0]["outcome"].(string)
	}
	require.Equal(t, "created", outcome("--in", "1h"))
	require.Equal(t, "kept earlier", outcome("--in", "2h", "--if-exists", "earliest"))
	require.Equal(t, "replaced", outcome("--in", "30m", "--if-exists", "earliest"))
	require.Equal(t, "moved", outcome("--in", "1h", "--debounce", "2h"))
	require.Equal(t, "moved", outcome("--in", "2h", "--debounce", "0s"))
	require.Equal(t, "replaced", outcome("--in", "1h", "--once", "24h"))
	b.fine("cancel", "-t", "TOPIC", "x")
	require.Equal(t, "already done", outcome("--in", "1h", "--once", "24h"))
}

func TestScheduleMany(t *testing.T) {
	b := setup(t)
	const n = 2*1000 + 1 // in batches of 1,000
	out := b.fine("schedule", "-t", "TOPIC", "--count", strconv.Itoa(n), "--id", "x", "--at", "2031-01-02T00:00:00Z", "--spacing", "1s")
	require.Len(t, strings.Fields(out), n)
	i := 0
	for info, err := range b.Client().List(t.Context(), b.topic, wakebell.Filter{}, wakebelltype.Page{}) {
		require.NoError(t, err)
		require.Equal(t, "x-"+strconv.Itoa(i), info.ID)
		require.Equal(t, time.Date(2031, 1, 2, 0, 0, i, 0, time.UTC), info.Due.UTC())
		i++
	}
	require.Equal(t, n, i)

	ids := strings.Fields(b.fine("schedule", "-t", "TOPIC", "--count", "2", "--in", "1h"))
	require.Len(t, ids, 2)
	require.NotEqual(t, ids[0], ids[1])
	require.Equal(t, "one-0\n", b.fine("schedule", "-t", "TOPIC", "--id", "one", "--count", "1", "--in", "1h"))
}

func TestScheduleIn(t *testing.T) {
	b := setup(t)
	line := objects(t, b.fine("schedule", "-t", "TOPIC", "--in", "90m", "-o", "json"))[0]
	due, err := time.Parse(time.RFC3339Nano, line["due"].(string))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(90*time.Minute), due, time.Minute)
	b.fine("schedule", "-t", "TOPIC", "--id", "past", "--in", "-5m")
	stats, err := b.Client().Stats(t.Context(), b.topic)
	require.NoError(t, err)
	require.Equal(t, int64(1), stats.Due)
}

// TestInstantsAtTheEndOfTime checks that an error names the flag and the bound that are
// exceeded.
func TestInstantsAtTheEndOfTime(t *testing.T) {
	b := setup(t)
	b.fine("schedule", "-t", "TOPIC", "--id", "far", "--in", "2562047h")
	b.fine("schedule", "-t", "TOPIC", "--id", "last", "--at", "9999-12-31T23:59:59Z")
	for _, c := range [][]string{
		{"at: 9999-12-31T23:59:59.999999Z, want at most 9999-12-31T23:59:59Z", "--at", "9999-12-31T23:59:59.999999Z"},
		{"--spacing: 2562047h0m0s between 3 timers", "--count", "3", "--spacing", "2562047h"},
	} {
		code, _, stderr := b.call(append([]string{"schedule", "-t", "TOPIC"}, c[1:]...)...)
		require.Equal(t, cli.ExitUsage, code)
		require.Contains(t, stderr, c[0])
	}
}
