package main

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestDoctor(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes")
	b := &bundle{t: t, topic: "t", redis: "redis://" + server.Addr}
	code, stdout, stderr := b.call("doctor", "-o", "json")
	require.Equal(t, cli.ExitOK, code, stdout)
	require.Contains(t, stderr, "there is none; name one with --topic")
	require.Len(t, objects(t, stdout), 8, "the server is checked nevertheless")

	b.fine("schedule", "-t", "TOPIC", "--in", "1h")
	code, stdout, stderr = b.call("doctor", "-o", "json")
	require.Equal(t, cli.ExitOK, code, stderr)
	require.Empty(t, stderr)
	findings := objects(t, stdout)
	require.Len(t, findings, 15)
	byCheck := map[any]map[string]any{}
	for _, f := range findings {
		byCheck[f["check"]] = f
	}
	require.Equal(t, map[string]any{
		"grade": "warn", "check": "replicas", "server": "", "topic": "",
		"found": "none: timers wait for this server to come back, with what its disk has",
		"do":    "add a replica, and Sentinel or a Cluster to promote it",
	}, byCheck["replicas"])
	require.Equal(t, map[string]any{
		"grade": "good", "check": "types", "server": "", "topic": "t", "found": "all keys hold what they should", "do": "",
	}, byCheck["types"])

	require.Equal(t, "none, and the topic has 1 timers", byCheck["nodes"]["found"])
	require.Equal(t, "good", byCheck["beats"]["grade"])

	require.NoError(t, server.Client(t).Set(t.Context(), "timers_dead:t", "\x1b[31m", 0).Err())
	code, stdout, stderr = b.call("--prefix", "t", "doctor", "-t", "")
	require.Equal(t, cli.ExitUsage, code, stdout)
	require.Contains(t, stderr, "--topic: empty")
	code, stdout, stderr = b.call("doctor")
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stderr, "1 of 15 checks are bad")
	require.Contains(t, stdout, `bad      types        t: "timers_dead:t" holds a string, want stream`+"\n"+strings.Repeat(" ", 22)+"-> rename or remove")
	require.Contains(t, stdout, "warn     replicas     none")
	code, _, _ = b.call("doctor", "-t", "other")
	require.Equal(t, cli.ExitOK, code, "another topic has no findings")
}

// Nothing handles a topic and nothing fires a schedule: the doctor says since when.
func TestDoctorReportsWhatIsAbsent(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes")
	b := &bundle{t: t, topic: "t", redis: "redis://" + server.Addr}
	rdb := server.Client(t)
	b.fine("schedule", "-t", "TOPIC", "--id", "a", "--in", "1h")
	b.fine("schedules", "put", "daily", "-t", "TOPIC", "--every", "24h")
	code, stdout, _ := b.call("doctor")
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stdout, "bad      beats        none, and 1 recurring schedules")
	require.Contains(t, stdout, "warn     nodes        t: none, and the topic has 1 timers")

	past := float64(time.Now().Add(-time.Hour).Unix())
	require.NoError(t, rdb.ZAdd(t.Context(), "timers_timeline:t", redis.Z{Score: past, Member: "a"}).Err())
	require.NoError(t, rdb.ZAdd(t.Context(), "redbeat::schedule", redis.Z{Score: past, Member: "redbeat:daily"}).Err())
	_, stdout, _ = b.call("doctor")
	require.Regexp(t, `bad      nodes        t: none, and 1 timers are due, the first for 1h0m\d`, stdout)
	require.Regexp(t, `bad      beats        none, and 1 recurring schedules; a run has been due for 1h0m\d`, stdout)

	require.NoError(t, rdb.Set(t.Context(), "redbeat::lock", "python", time.Minute).Err())
	_, stdout, _ = b.call("doctor")
	require.Regexp(t, `bad      beats        a run has been due for 1h0m\d+s, and no beat fires it`, stdout)
	b.fine("schedules", "pause", "daily")
	_, stdout, _ = b.call("doctor")
	require.Contains(t, stdout, "good     beats        1, for 1 recurring schedules", "a paused schedule is not due")
}

// Messages that no consumer will give back are findings, and so are leases that no consumer
// claims again.
func TestDoctorReportsHeldMessages(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes")
	b := &bundle{t: t, topic: "t", redis: "redis://" + server.Addr}
	rdb := server.Client(t)
	finding := func() string {
		_, stdout, _ := b.call("doctor")
		return stdout
	}
	b.fine("queue", "publish", "--queue", "TOPIC", "--text", "a")
	require.Contains(t, finding(), "good     queue        t: its keys can be read")
	require.NoError(t, rdb.LMove(t.Context(), "t::pending", "t::processing", "right", "left").Err())
	require.Contains(t, finding(), "warn     queue        t: 1 messages are held without a lease")
	member := rdb.LIndex(t.Context(), "t::processing", 0).Val()
	require.NoError(t, rdb.ZAdd(t.Context(), "t::processing:lease_deadlines", redis.Z{Score: 1, Member: member}).Err())
	require.Contains(t, finding(), "warn     queue        t: 1 leases have expired and were not claimed again")
	require.NoError(t, rdb.Set(t.Context(), "t::processing:lease_deadlines", "text", 0).Err())
	require.Contains(t, finding(), "bad      queue        t: ")
}

// Without Redis the doctor reports an unreachable server with advice, as a finding.
func TestDoctorWithoutRedis(t *testing.T) {
	t.Parallel()
	b := &bundle{t: t, topic: "t", redis: "redis://127.0.0.1:1?max_retries=-1"}
	code, stdout, stderr := b.call("doctor")
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stdout, "bad      reachable")
	require.Contains(t, stdout, "-> start Redis")
	require.Contains(t, stdout, "unknown  clock")
	require.Contains(t, stderr, "cannot be listed")
	require.Contains(t, stderr, "1 of 8 checks are bad")
}

// On a Cluster each master is checked.
func TestDoctorOfCluster(t *testing.T) {
	t.Parallel()
	masters := redistest.Cluster(t, "--appendonly", "yes")
	b := &bundle{t: t, topic: "t", redis: "redis+cluster://" + masters[0].Addr}
	stdout := b.fine("doctor", "-t", "TOPIC", "-o", "json")
	servers := map[any]int{}
	for _, f := range objects(t, stdout) {
		if servers[f["server"]]++; f["check"] == "slots" {
			require.Equal(t, "good", f["grade"])
			require.Contains(t, f["found"], "all keys in slot")
		}
	}
	for _, addr := range masters.Addrs() {
		require.Equal(t, 7, servers[addr], stdout)
	}
	code, stdout, _ := b.call("doctor", "-t", "}")
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stdout, "rename the topic")
}

func TestProgramCanUseDoctor(t *testing.T) {
	b := setup(t)
	c, err := wakebell.NewClient(conntest.New(t, b.rdb, connection.Config{Prefix: "p."}))
	require.NoError(t, err)
	findings, err := c.Diagnose(t.Context(), b.topic)
	require.NoError(t, err)
	require.Equal(t, wakebelltype.GradeGood, findings[0].Grade)
	require.Equal(t, "p."+b.topic, findings[len(findings)-1].Topic)
	_, err = c.Diagnose(t.Context(), "")
	require.ErrorIs(t, err, wakebell.ErrInvalid)
}
