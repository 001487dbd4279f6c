package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/internal/redistest"
)

// serve starts a node that listens, on a Redis of its own.
func serve(t *testing.T) *over {
	t.Helper()
	server := redistest.Start(t)
	b := &bundle{t, "here", "redis://" + server.Addr, server.Client(t)}
	return b.over(b.start("node", "--listen", "127.0.0.1:0"))
}

// Commands on queues, gates and schedules have the same output over a node and on
// Redis.
func TestQueueGateAndScheduleCommandsOverNode(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for name, commands := range map[string]func(*testing.T){"queue": s.queues, "gate": s.gates, "schedules": s.schedules} {
		t.Run(name, commands)
	}
}

func (s *over) queues(t *testing.T) {
	queue := func(args ...string) []string { return append(append([]string{"queue"}, args...), "--queue", "TOPIC") }
	dead := func(args ...string) []string { return queue(append([]string{"dead"}, args...)...) }
	for _, body := range []string{"--text=hello", "--json={}", "--hex=00ff"} {
		s.Does(queue("publish", body)...)
	}
	require.Contains(t, s.same(queue("ls", "-o", "json")...), `"body_base64":"AP8="`)
	s.same(queue("ls", "--limit", "1")...)
	s.same(queue("ls", "--running")...)
	require.EqualValues(t, 3, objects(t, s.same(queue("stats", "-o", "json")...))[0]["pending"])
	s.same(queue("stats")...)
	s.fails(cli.ExitError, queue("drain", "--timeout", "150ms")...)
	require.Equal(t, "deleted 3\n", s.Does(queue("purge", "--running", "--kept", "--yes")...))
	s.same(queue("drain")...)

	s.messagesWithoutLease(t)

	require.NoError(t, s.rdb.LPush(t.Context(), s.topic+"::dlq", "a", "\xff", "c", "d").Err())
	s.same(dead("ls")...)
	letters := objects(t, s.same(dead("ls", "-o", "json")...))
	entry := func(i int) string { return letters[i]["entry"].(string) }
	s.same(dead("show", entry(1))...)
	require.Equal(t, "redriven 1\n", s.Does(dead("redrive", entry(0), "--dedup-key", "k")...))
	s.fails(cli.ExitNotFound, dead("redrive", entry(0))...)
	require.Equal(t, "duplicate\n", s.same(queue("publish", "--text", "x", "--dedup-key", "k")...))
	require.Equal(t, "deleted 1\n", s.Does(dead("rm", entry(1), "--yes")...))
	require.Equal(t, "redriven 2\n", s.Does(dead("redrive", "--all", "--yes")...))
	require.Equal(t, "deleted 0\n", s.same(dead("rm", "--all", "--yes")...))
}

// messagesWithoutLease lists what a dead consumer with AtMostOnce has left behind.
func (s *over) messagesWithoutLease(t *testing.T) {
	for _, body := range []string{"--text=first", "--text=second", "--text=third"} {
		s.Does("queue", "publish", "--queue", "TOPIC", body)
	}
	for range 2 {
		require.NoError(t, s.rdb.LMove(t.Context(), s.topic+"::pending", s.topic+"::processing", "right", "left").Err())
	}
	list := []string{"queue", "ls", "--queue", "TOPIC", "--running"}
	held := objects(t, s.same(append(list, "-o", "json")...))
	require.Len(t, held, 2)
	for i, body := range []string{"first", "second"} {
		require.Equal(t, body, held[i]["body"])
		require.Equal(t, "running", held[i]["state"])
		require.Empty(t, held[i]["deadline"])
	}
	require.Regexp(t, `running +0 +- +"first"`, s.same(list...))
	require.EqualValues(t, 2, objects(t, s.same("queue", "stats", "--queue", "TOPIC", "-o", "json"))[0]["unleased"])
	require.Equal(t, "deleted 3\n", s.Does("queue", "purge", "--queue", "TOPIC", "--running", "--yes"))
	require.Empty(t, s.same(append(list, "-o", "json")...))
}

func (s *over) gates(t *testing.T) {
	holder := s.start("gate", "hold", "TOPIC", "--lease", "24h") // so that it is not extended between the two outputs
	holder.lines(1)
	require.Contains(t, s.same("gate", "ls"), s.topic)
	s.same("gate", "ls", "-o", "json")
	s.same("gate", "show", "TOPIC")
	require.Contains(t, s.same("gate", "show", "TOPIC", "-o", "json"), `"waiters":[],"guard":{}`)
	s.fails(cli.ExitUsage, "gate", "release", "TOPIC")
	require.Contains(t, s.Does("gate", "release", "TOPIC", "--force"), "released")
	s.fails(cli.ExitNotFound, "gate", "release", "TOPIC", "--force")
	require.NotZero(t, holder.wait())
	require.Contains(t, s.Does("gate", "repair", "TOPIC", "--floor", "8000000000000000"), `"after":8000000000000000`)
	s.same("gate", "repair", "TOPIC")
}

func (s *over) schedules(t *testing.T) {
	for _, name := range []string{"hourly", "daily"} {
		s.Does("schedules", "put", name, "-t", "TOPIC", "--cron", "0 0 * * *", "--json", `{"n":1}`)
	}
	require.Equal(t, 1, strings.Count(s.same("schedules", "export", "daily"), "\n"))
	dump := s.same("schedules", "export")
	require.Equal(t, "7\n", s.same("schedules", "backfill", "daily", "--from", "2026-11-01T00:00:00Z", "--to", "2026-11-08T00:00:00Z"))
	s.same("schedules", "backfill", "hourly", "--from", "2026-11-01T00:00:00Z", "--to", "2026-11-02T00:00:00Z", "-o", "json")
	require.Equal(t, "2026-11-01T00:00:00Z\n2026-11-02T00:00:00Z\n",
		s.same("schedules", "backfill", "daily", "--from", "2026-11-01T00:00:00Z", "--to", "2026-11-03T00:00:00Z", "--dry-run"))
	s.fails(cli.ExitUsage, "schedules", "backfill", "daily", "--from", "2026-11-01T00:00:00Z", "--to", "2026-11-02T00:00:00Z", "--celery")
	s.Does("schedules", "rm", "hourly", "daily", "--yes")
	s.fails(cli.ExitNotFound, "schedules", "export", "daily")

	var out, errs bytes.Buffer
	code := run(t.Context(), append(s.at, "schedules", "import"), strings.NewReader(dump), &out, &errs)
	require.Zero(t, code, errs.String())
	require.Equal(t, "daily\nhourly\n", out.String())
	require.Equal(t, 2, strings.Count(s.same("schedules", "export"), "\n"))
}
