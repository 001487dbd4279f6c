package main

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

// keyed returns arguments with a key prefix for the bundle's topic.
func (b *bundle) keyed(args ...string) []string {
	return append(args, "--key-prefix", b.topic+":")
}

func TestSchedules(t *testing.T) {
	b := setup(t)
	b.fine(b.keyed("schedules", "put", "tick", "-t", "TOPIC", "--every", "1h", "--json", `{"n":1}`)...)
	b.fine(b.keyed("schedules", "put", "nightly", "-t", "TOPIC", "--cron", "30 2 * * 1-5", "--tz", "Europe/Berlin",
		"--jitter", "1m", "--misfire", "skip", "--overlap", "queue", "--max-runs", "5", "--until", "2099-01-01T00:00:00Z")...)
	b.fine(b.keyed("schedules", "put", "weekly", "-t", "TOPIC", "--rrule", "DTSTART:20990105T090000Z\nRRULE:FREQ=WEEKLY")...)

	listed := objects(t, b.fine(b.keyed("schedules", "ls", "-o", "json")...))
	require.Len(t, listed, 3)
	require.Equal(t, "nightly", listed[0]["name"])
	require.Equal(t, "cron 30 2 * * 1-5", listed[0]["rule"])
	require.Equal(t, "Europe/Berlin", listed[0]["zone"])
	require.Contains(t, b.fine(b.keyed("schedules", "ls")...), "every 1h0m0s")

	require.Empty(t, objects(t, b.fine(b.keyed("schedules", "show", "tick", "-o", "json")...))[0]["last_run"], "the schedule has not run")
	shown := objects(t, b.fine(b.keyed("schedules", "show", "nightly", "-o", "json")...))[0]
	require.Equal(t, "skip", shown["misfire"])
	require.Equal(t, "queue", shown["overlap"])
	require.Equal(t, "2099-01-01T00:00:00Z", shown["until"])
	require.Contains(t, b.fine(b.keyed("schedules", "show", "tick")...), "allow")

	require.Equal(t, "2099-01-05T09:00:00Z\n2099-01-12T09:00:00Z\n", b.fine(b.keyed("schedules", "preview", "weekly", "-n", "2")...))
	require.Len(t, objects(t, b.fine(b.keyed("schedules", "preview", "tick", "-n", "3", "-o", "json")...)), 3)

	run := objects(t, b.fine(b.keyed("schedules", "run-now", "tick", "weekly")...))
	require.EqualValues(t, 1, run[0]["run"])
	fired := b.fine(b.keyed("schedules", "backfill", "tick", "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-02T00:00:00Z", "-o", "json")...)
	require.JSONEq(t, `{"name":"tick","fired":24}`, fired)
	require.Equal(t, int64(26), b.rdb.ZCard(t.Context(), "timers_timeline:"+b.topic).Val())

	b.fine(b.keyed("schedules", "pause", "tick", "nightly")...)
	require.Empty(t, b.fine(b.keyed("schedules", "preview", "tick")...))
	b.fine(b.keyed("schedules", "resume", "tick", "nightly")...)

	dump := b.fine(b.keyed("schedules", "export")...)
	require.Equal(t, 3, strings.Count(dump, "\n"))
	b.fine(b.keyed("schedules", "rm", "tick", "nightly", "weekly", "--yes")...)
	require.Empty(t, b.fine(b.keyed("schedules", "ls", "-o", "json")...))
	code, stdout, stderr := b.callWith(strings.NewReader(dump), b.keyed("schedules", "import")...)
	require.Zero(t, code, stderr)
	require.Equal(t, "nightly\ntick\nweekly\n", stdout)
	require.Equal(t, dump, b.fine(b.keyed("schedules", "export")...))
}

func TestSchedulesRefuse(t *testing.T) {
	b := setup(t)
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"schedules"}, cli.ExitUsage},
		{[]string{"schedules", "put", "x", "-t", "TOPIC"}, cli.ExitUsage},
		{[]string{"schedules", "put", "x", "-t", "TOPIC", "--every", "1s", "--cron", "* * * * *"}, cli.ExitUsage},
		{[]string{"schedules", "put", "x", "-t", "TOPIC", "--cron", "x"}, cli.ExitUsage},
		{[]string{"schedules", "put", "x", "-t", "TOPIC", "--cron", "* * * * *", "--tz", "Berlin"}, cli.ExitUsage},
		{[]string{"schedules", "put", "x", "-t", "TOPIC", "--every", "1s", "--json", "{"}, cli.ExitUsage},
		{[]string{"schedules", "put", "x", "-t", "TOPIC", "--every", "1s", "--until", "soon"}, cli.ExitUsage},
		{[]string{"schedules", "put", "x", "-t", "TOPIC", "--every", "1s", "--misfire", "never"}, cli.ExitUsage},
		{[]string{"schedules", "show", "missing"}, cli.ExitNotFound},
		{[]string{"schedules", "rm", "missing"}, cli.ExitUsage}, // there is no terminal for a confirmation
		{[]string{"schedules", "rm", "missing", "-y"}, cli.ExitNotFound},
		{[]string{"schedules", "pause", "missing"}, cli.ExitNotFound},
		{[]string{"schedules", "run-now", "missing"}, cli.ExitNotFound},
		{[]string{"schedules", "preview", "missing"}, cli.ExitNotFound},
		{[]string{"schedules", "backfill", "missing", "--from", "x", "--to", "y"}, cli.ExitUsage},
		{[]string{"schedules", "rm"}, cli.ExitUsage},
		{[]string{"beat", "--zone", "Berlin"}, cli.ExitUsage},
		{[]string{"beat", "--max-interval", "-1s"}, cli.ExitUsage},
	} {
		code, _, stderr := b.call(c.args...)
		require.Equal(t, c.code, code, "%v: %s", c.args, stderr)
	}
	code, _, _ := b.callWith(strings.NewReader(`{"name":"x"}`), b.keyed("schedules", "import")...)
	require.Equal(t, cli.ExitUsage, code)
}

// Crontabs of Python are computed in --zone, as by a beat with the same flag, so that a
// backfill has the ids of the beat. A zone that contradicts the last run is reported.
func TestSchedulesInZoneOfApp(t *testing.T) {
	b := setup(t)
	b.rdb.HSet(t.Context(), b.topic+":py", "definition", `{"name":"py","task":"`+b.topic+`","args":null,"kwargs":{},"options":{},`+
		`"schedule":{"__type__":"crontab","minute":"0","hour":"9"},"enabled":true}`, "meta", `{"last_run_at":{"__type__":"datetime",`+
		`"year":2026,"month":7,"day":1,"hour":9,"minute":0,"second":0,"microsecond":0,"timezone":7200.0},"total_run_count":1}`)
	b.rdb.ZAdd(t.Context(), b.topic+"::schedule", redis.Z{Score: 1, Member: b.topic + ":py"})
	zone := []string{"--zone", "Europe/Berlin"}
	backfill := b.keyed("schedules", "backfill", "py", "--from", "2026-07-02T00:00:00Z", "--to", "2026-07-03T00:00:00Z")
	for _, args := range [][]string{
		b.keyed("schedules", "ls"), b.keyed("schedules", "show", "py"), b.keyed("schedules", "preview", "py", "-n", "1"), append(backfill, "--dry-run"),
	} {
		code, _, stderr := b.call(args...)
		require.Zero(t, code, stderr)
		require.Contains(t, stderr, "written with the offset +02:00, but UTC has +00:00", args)
		code, _, stderr = b.call(append(args, zone...)...)
		require.Zero(t, code, stderr)
		require.NotContains(t, stderr, "warning", args)
	}
	require.Equal(t, "2026-07-02T09:00:00Z\n", b.fine(append(backfill, "--dry-run")...))
	b.fine(append(backfill, zone...)...)
	require.Equal(t, []string{"py@2026-07-02T07:00:00Z"}, b.rdb.ZRange(t.Context(), "timers_timeline:"+b.topic, 0, -1).Val())
	require.Contains(t, b.rdb.HGet(t.Context(), b.topic+":py", "meta").Val(), `"timezone":7200.0`)
	code, _, stderr := b.call(b.keyed("schedules", "ls", "--zone", "Berlin")...)
	require.Equal(t, 2, code, stderr)
}
