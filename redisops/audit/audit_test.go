package audit

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/wakebelltype"
)

// open returns an audit under a key of the test.
func open(t *testing.T, rdb *redis.Client, cfg wakebelltype.AuditConfig) *Log {
	t.Helper()
	if cfg.Key == "" {
		cfg.Key = redistest.Name(t)
	}
	l, err := Open(rdb, cfg, nil)
	require.NoError(t, err)
	return l
}

func (l *Log) all(t *testing.T, f wakebelltype.AuditFilter) (all []wakebelltype.AuditEntry) {
	t.Helper()
	for after := ""; ; {
		page, next, err := l.List(t.Context(), f, after, 0)
		require.NoError(t, err)
		all = append(all, page...)
		if after = next; after == "" {
			return all
		}
	}
}

func TestEntrySaysWhoDidWhat(t *testing.T) {
	t.Parallel()
	server, _ := redistest.Embedded(t)
	for _, rdb := range []*redis.Client{redistest.Shared(t), server} {
		l := open(t, rdb, wakebelltype.AuditConfig{Caller: "billing"})
		ctx := t.Context()
		l.Record(ctx, wakebelltype.AuditTopicPause, "invoices", One("reason: the bank is down", nil))
		l.Record(WithCaller(ctx, "ada"), wakebelltype.AuditTopicCancelAll, "invoices", Result{Count: 1_000_000_000_000})
		peer := messages.WithOrigin(messages.WithPrincipal(WithCaller(ctx, "forged"), "ops"), messages.Origin{Host: "192.0.2.7", Credential: "token"})
		l.Record(peer, wakebelltype.AuditTopicRedrive, "invoices", Result{Count: 3, Err: errors.New("redis is gone")})
		l.Record(messages.WithOrigin(ctx, messages.Origin{Host: "192.0.2.8"}), wakebelltype.AuditGateRelease, "deploy", One("", nil))
		// An operation that changed nothing, and a part of another one.
		l.Record(ctx, wakebelltype.AuditTopicResume, "invoices", One("", errors.New("redis is gone")))
		l.Record(Skip(ctx), wakebelltype.AuditTopicResume, "invoices", One("", nil))

		all := l.all(t, wakebelltype.AuditFilter{})
		require.Len(t, all, 4)
		for i := range all {
			require.NotZero(t, all[i].At)
			require.NotEmpty(t, all[i].Cursor)
			all[i].At, all[i].Cursor = time.Time{}, ""
		}
		require.Equal(t, []wakebelltype.AuditEntry{
			{Operation: "topic.pause", Name: "invoices", Count: 1, By: "billing", Via: "process", From: l.origin, Detail: "reason: the bank is down"},
			{Operation: "topic.cancel_all", Name: "invoices", Count: 1_000_000_000_000, By: "ada", Via: "process", From: l.origin},
			{Operation: "topic.redrive", Name: "invoices", Count: 3, By: "ops", Via: "token", From: "192.0.2.7", Error: "redis is gone"},
			{Operation: "gate.release", Name: "deploy", Count: 1, Via: "network", From: "192.0.2.8"},
		}, all)
		require.Zero(t, l.Failed())
	}
}

func TestFiltersAndCursors(t *testing.T) {
	t.Parallel()
	l := open(t, redistest.Shared(t), wakebelltype.AuditConfig{Caller: "ada"})
	for _, detail := range []string{"x", "y", "z"} { // else they would be merged
		l.Record(t.Context(), wakebelltype.AuditTopicPause, "a", One(detail, nil))
		l.Record(WithCaller(t.Context(), "bob"), wakebelltype.AuditTopicResume, "b", One(detail, nil))
		l.Record(t.Context(), wakebelltype.AuditQueuePurge, "q", One("", nil))
	}
	for _, c := range []struct {
		filter wakebelltype.AuditFilter
		want   int
	}{
		{wakebelltype.AuditFilter{}, 9},
		{wakebelltype.AuditFilter{Operation: "topic.pause"}, 3},
		{wakebelltype.AuditFilter{Operation: "topic"}, 6},
		{wakebelltype.AuditFilter{Operation: "top"}, 0},
		{wakebelltype.AuditFilter{Name: "b"}, 3},
		{wakebelltype.AuditFilter{By: "ada"}, 6},
		{wakebelltype.AuditFilter{By: "ada", Name: "b"}, 0},
		{wakebelltype.AuditFilter{Since: time.Now().Add(-time.Hour)}, 9},
		{wakebelltype.AuditFilter{Since: time.Now().Add(time.Hour)}, 0},
	} {
		all := l.all(t, c.filter)
		require.Len(t, all, c.want, "%+v", c.filter)
		last, err := l.Last(t.Context(), c.filter, 2)
		require.NoError(t, err)
		require.Equal(t, all[max(0, len(all)-2):], append(all[:0:0], last...), "%+v", c.filter)

		var paged []wakebelltype.AuditEntry
		for after := ""; ; {
			page, next, err := l.List(t.Context(), c.filter, after, 1)
			require.NoError(t, err)
			require.LessOrEqual(t, len(page), 1)
			paged = append(paged, page...)
			if after = next; after == "" {
				break
			}
		}
		require.Equal(t, all, paged, "%+v", c.filter)
	}
	_, _, err := l.List(t.Context(), wakebelltype.AuditFilter{}, "x", 1)
	require.ErrorContains(t, err, "invalid argument")
	for _, n := range []int{0, 1001} {
		_, err = l.Last(t.Context(), wakebelltype.AuditFilter{}, n)
		require.ErrorContains(t, err, "want 1 to 1000")
	}
}

// A command of an operator that is many calls is one entry for each minute.
func TestCallsOfCommandAreMerged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		l := open(t, rdb, wakebelltype.AuditConfig{})
		record := func(operation wakebelltype.AuditOperation, name string) {
			l.Record(t.Context(), operation, name, One("", nil))
			<-time.After(time.Second)
		}
		began := time.Now()
		for range 60 {
			record(wakebelltype.AuditQueueRedrive, "q")
		}
		record(wakebelltype.AuditQueueRedrive, "q") // a minute after the first
		record(wakebelltype.AuditQueueRedrive, "other")
		record(wakebelltype.AuditSchedulePut, "a")
		record(wakebelltype.AuditSchedulePut, "b")
		record(wakebelltype.AuditTopicCancelAll, "t")
		record(wakebelltype.AuditTopicCancelAll, "t")
		var counts []int64
		all := l.all(t, wakebelltype.AuditFilter{})
		for _, e := range all {
			counts = append(counts, e.Count)
		}
		require.Equal(t, []int64{60, 1, 1, 2, 1, 1}, counts)
		require.WithinDuration(t, began, all[0].Since, time.Second)
		require.WithinDuration(t, began.Add(59*time.Second), all[0].At, time.Second)
		require.Equal(t, "b", all[3].Name)
		require.Zero(t, all[1].Since)
	})
}

// A call that is repeated after a lost reply has one entry, and the next call another.
func TestRepeatedCallHasOneEntry(t *testing.T) {
	t.Parallel()
	embedded, _ := redistest.Embedded(t)
	for _, rdb := range []*redis.Client{redistest.Shared(t), embedded} {
		l := open(t, rdb, wakebelltype.AuditConfig{})
		change := wakebelltype.Change{Operation: wakebelltype.AuditTopicCancel, Name: "t", Count: 3}
		for _, key := range []string{"a", "a", "b", "a", "", ""} {
			require.NoError(t, l.Report(messages.WithOnce(t.Context(), key), "t", change))
		}
		require.Len(t, l.all(t, wakebelltype.AuditFilter{}), 4)
		other := messages.WithPrincipal(t.Context(), "ops")
		require.NoError(t, l.Report(messages.WithOnce(other, "a"), "t", change))
		require.Len(t, l.all(t, wakebelltype.AuditFilter{}), 5, "keys belong to principals")
	}
}

// An entry of an earlier version is merged with, and not taken for a repetition.
func TestEntriesOfEarlierVersions(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	l := open(t, rdb, wakebelltype.AuditConfig{Caller: "ada"})
	require.NoError(t, rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: l.Key(), Values: []string{
		"operation", "queue.redrive", "name", "q", "by", "ada", "via", "process", "from", l.origin, "detail", "", "error", "", "count", "2", "since", "",
	}}).Err())
	l.Record(t.Context(), wakebelltype.AuditQueueRedrive, "q", One("", nil))
	all := l.all(t, wakebelltype.AuditFilter{})
	require.Len(t, all, 1)
	require.EqualValues(t, 3, all[0].Count)
}

func TestStreamIsCapped(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	l := open(t, rdb, wakebelltype.AuditConfig{})
	pipe := rdb.Pipeline()
	for range maxEntries + 500 {
		pipe.XAdd(t.Context(), &redis.XAddArgs{Stream: l.Key(), Values: []string{"operation", "x"}})
	}
	_, err := pipe.Exec(t.Context())
	require.NoError(t, err)
	l.Record(t.Context(), wakebelltype.AuditTopicPause, "t", One("", nil))
	require.LessOrEqual(t, rdb.XLen(t.Context(), l.Key()).Val(), int64(maxEntries+200))
	require.NoError(t, rdb.Del(t.Context(), l.Key()).Err())
}

// TestFailureIsCountedAndLoggedOnceMinute checks it with a key of another type, for a
// user without rights, with full memory, and while Redis is down.
func TestFailureIsCountedAndLoggedOnceMinute(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rdb := server.Client(t)
	ctx := t.Context()
	require.NoError(t, rdb.Set(ctx, "odd", "x", 0).Err())
	require.NoError(t, rdb.Do(ctx, "ACL", "SETUSER", "limited", "on", ">secret", "+@all", "~other").Err())
	limited := server.Client(t, func(o *redis.Options) { o.Username, o.Password = "limited", "secret" })
	full := redistest.Start(t, "--maxmemory", "1")
	gone := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialTimeout: 50 * time.Millisecond})
	defer func() { _ = gone.Close() }()
	for name, c := range map[string]struct {
		rdb  *redis.Client
		key  string
		want string
	}{
		"another type": {rdb, "odd", "holds a string, want stream"},
		"no right":     {limited, "audit", "denies"},
		"memory full":  {full.Client(t), "audit", "memory is full"},
		"down":         {gone, "audit", "unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			l, err := Open(c.rdb, wakebelltype.AuditConfig{Key: c.key}, slog.New(slog.NewTextHandler(&log, nil)))
			require.NoError(t, err)
			ended, cancel := context.WithCancel(ctx)
			cancel()
			l.Record(ended, wakebelltype.AuditTopicPause, "t", One("", nil))
			l.Record(ctx, wakebelltype.AuditTopicPause, "t", One("", nil))
			require.EqualValues(t, 2, l.Failed())
			require.Equal(t, 1, strings.Count(log.String(), "audit entry not written"), log.String())
			require.Contains(t, log.String(), c.want)
		})
	}
}

func TestAuditConfigurations(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	for _, cfg := range []wakebelltype.AuditConfig{{Caller: strings.Repeat("x", 257)}, {Key: strings.Repeat("x", 513)}} {
		_, err := Open(rdb, cfg, nil)
		require.ErrorContains(t, err, "invalid argument: audit")
	}
	l := open(t, rdb, wakebelltype.AuditConfig{Off: true})
	l.Record(t.Context(), wakebelltype.AuditTopicPause, "t", One("", nil))
	require.Empty(t, l.all(t, wakebelltype.AuditFilter{}))
	l = open(t, rdb, wakebelltype.AuditConfig{})
	require.Contains(t, l.cfg.Caller, "@")
	l.Record(t.Context(), "topic.unheard", "t", One("", nil))
	require.EqualValues(t, 1, l.Failed())
	(*Log)(nil).Record(t.Context(), wakebelltype.AuditTopicPause, "t", One("", nil))
	require.Zero(t, (*Log)(nil).Failed())
}
