package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
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
	code, stdout, stderr := b.call("doctor", "--all", "-o", "json")
	require.Equal(t, cli.ExitOK, code, stdout)
	require.Contains(t, stderr, "there is none; name one with --topic")
	require.Len(t, objects(t, stdout), 9, "the server is checked nevertheless")

	b.fine("schedule", "-t", "TOPIC", "--in", "1h")
	code, stdout, stderr = b.call("doctor", "--all", "-o", "json")
	require.Equal(t, cli.ExitOK, code, stderr)
	require.Empty(t, stderr)
	findings := objects(t, stdout)
	require.Len(t, findings, 21)
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
	for _, check := range []string{"owners", "beats", "versions", "progress", "dead", "settings"} {
		require.Equal(t, "good", byCheck[check]["grade"], check)
	}
	_, stdout, _ = b.call("doctor", "-o", "json")
	for _, f := range objects(t, stdout) {
		require.NotEqual(t, "good", f["grade"], "only with --all")
	}

	require.NoError(t, server.Client(t).Set(t.Context(), "timers_dead:t", "\x1b[31m", 0).Err())
	code, stdout, stderr = b.call("--prefix", "t", "doctor", "-t", "")
	require.Equal(t, cli.ExitUsage, code, stdout)
	require.Contains(t, stderr, "--topic: empty")
	code, stdout, stderr = b.call("doctor")
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stderr, "1 of 21 checks are bad")
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
	_, stdout, _ = b.call("doctor", "--all")
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
		_, stdout, _ := b.call("doctor", "--all")
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
	require.Contains(t, stderr, "1 of 9 checks are bad")
}

// On a Cluster each master is checked.
func TestDoctorOfCluster(t *testing.T) {
	t.Parallel()
	masters := redistest.Cluster(t, "--appendonly", "yes")
	b := &bundle{t: t, topic: "t", redis: "redis+cluster://" + masters[0].Addr}
	stdout := b.fine("doctor", "--all", "-t", "TOPIC", "-o", "json")
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

// trips counts round trips and the commands in them.
type trips struct {
	redis.Hook
	trips, commands atomic.Int64
}

func (h *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.trips.Add(1)
		h.commands.Add(1)
		return next(ctx, cmd)
	}
}

func (h *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.trips.Add(1)
		h.commands.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

func (h *trips) DialHook(next redis.DialHook) redis.DialHook { return next }

// A thousand topics take few round trips, and the command shows the worst of them.
func TestDoctorOfThousandTopics(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes")
	rdb := server.Client(t)
	pipe := rdb.Pipeline()
	now := time.Now()
	for i := range 1000 {
		topic := fmt.Sprintf("t%03d", i)
		pipe.SAdd(t.Context(), "timers_topics", topic)
		pipe.HSet(t.Context(), "timers_payloads:"+topic, "a", "x")
		pipe.ZAdd(t.Context(), "timers_timeline:"+topic, redis.Z{Score: float64(now.Add(-time.Duration(i+1) * time.Hour).Unix()), Member: "a"})
	}
	pipe.HSet(t.Context(), "timers_payloads:gone", "a", "x")
	pipe.HSet(t.Context(), "timers_counts:t007", strconv.FormatInt(now.Unix()/60-1, 10)+"d", 6)
	_, err := pipe.Exec(t.Context())
	require.NoError(t, err)

	var h trips
	rdb.AddHook(&h)
	c, err := wakebell.NewClient(conntest.New(t, rdb, connection.Config{}))
	require.NoError(t, err)
	var topics []string
	for i := range 1000 {
		topics = append(topics, fmt.Sprintf("t%03d", i))
	}
	h.trips.Store(0)
	h.commands.Store(0)
	findings, err := c.Diagnose(t.Context(), topics...)
	require.NoError(t, err)
	require.Len(t, findings, 10+11*1000)
	require.Less(t, h.trips.Load(), int64(300))
	require.Less(t, h.commands.Load(), int64(100*1000))

	b := &bundle{t: t, topic: "t", redis: "redis://" + server.Addr}
	code, stdout, stderr := b.call("doctor")
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stderr, "1000 of 11010 checks are bad")
	require.Less(t, strings.Count(stdout, "\n"), 50, stdout)
	require.Regexp(t, `^bad      nodes        t999: none, and 1 timers are due, the first for 1000h`, stdout)
	require.Contains(t, stdout, "bad      nodes        and 990 more; --all shows them")
	require.Contains(t, stdout, "warn     owners       1 topics that are not listed and have no timers have keys: timers_payloads")
	require.Contains(t, stdout, "warn     dead         t007: 0 dead letters, 6 of the last 30 min")
}

// Nodes say their settings and versions when they are asked.
func TestDoctorAsksNodes(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes")
	b := &bundle{t: t, topic: "t", redis: "redis://" + server.Addr}
	b.fine("schedule", "-t", "TOPIC", "--id", "a", "--in", "1h")
	for _, concurrent := range []string{"3", "4"} {
		b.start("node", "-t", "TOPIC", "--max-concurrent", concurrent)
	}
	require.Eventually(t, func() bool {
		_, stdout, _ := b.call("doctor", "--all")
		return strings.Contains(stdout, "warn     settings     t: differ: max_concurrent 3 (1 nodes), 4 (1 nodes)") &&
			strings.Contains(stdout, "good     versions     ")
	}, 30*time.Second, 100*time.Millisecond)
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
