package queue

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

func (f *fixture) counts(t *testing.T) (all wakebelltype.ThroughputCounts) {
	t.Helper()
	found, err := f.Throughput(t.Context(), time.Hour)
	require.NoError(t, err)
	for _, p := range found.Points {
		all.Scheduled, all.Handled, all.Failed, all.Dead = all.Scheduled+p.Scheduled, all.Handled+p.Handled, all.Failed+p.Failed, all.Dead+p.Dead
	}
	return all
}

// TestQueueRecords checks that duplicates and repeated calls are not counted, that a
// topic of the same name has records of its own, and that a purge removes those of the
// queue.
func TestQueueRecords(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		m := NewMessage([]byte("once"), "")
		for range 2 { // a repeated call
			_, _, err := f.Publish(ctx, PublishOptions{}, m)
			require.NoError(t, err)
		}
		_, _, err := f.Publish(ctx, PublishOptions{}, NewMessage([]byte("a"), "key"), NewMessage([]byte("b"), "key"))
		require.NoError(t, err)
		for range 2 {
			require.NoError(t, f.WriteCounts(ctx, "me", 1, wakebelltype.ThroughputCounts{Handled: 5, Failed: 3, Dead: 1}))
		}
		require.Equal(t, wakebelltype.ThroughputCounts{Scheduled: 2, Handled: 5, Failed: 3, Dead: 1}, f.counts(t))

		f.Settle(t, storetest.Verdict(exchange.DeadLetter, f.Claim(t, 1).Leases[0]))
		letters, _, err := f.DeadLettersAfter(ctx, "", 10)
		require.NoError(t, err)
		outcome, _, err := f.RedriveLetter(ctx, letters[0], "", PublishOptions{})
		require.NoError(t, err)
		require.Equal(t, wakebelltype.QueueRedriveSucceeded, outcome)
		require.EqualValues(t, 3, f.counts(t).Scheduled, "a redrive publishes")

		attempts := []wakebelltype.Attempt{{ID: "x", Attempt: 1, Outcome: wakebelltype.EventDead, Started: time.Now().UTC().Truncate(time.Microsecond), Error: "no"}}
		require.NoError(t, f.WriteHistory(ctx, "host", attempts))
		found, next, err := f.History(ctx, wakebelltype.HistoryFilter{ID: "x"}, "", 0)
		require.NoError(t, err)
		require.Empty(t, next)
		last, err := f.LastHistory(ctx, wakebelltype.HistoryFilter{}, 1)
		require.NoError(t, err)
		require.Equal(t, found, last)
		require.Equal(t, "no", last[0].Error)

		topic, err := f.timers.Throughput(ctx, f.Name(), time.Hour)
		require.NoError(t, err)
		for _, p := range topic.Points {
			require.Zero(t, p.Scheduled+p.Handled+p.Failed+p.Dead, "a topic of the same name has counts of its own")
		}
		ofTopic, _, err := f.timers.History(ctx, f.Name(), wakebelltype.HistoryFilter{}, "", 0)
		require.NoError(t, err)
		require.Empty(t, ofTopic)
		require.NoError(t, f.timers.Forget(ctx, f.Name()))
		require.EqualValues(t, 3, f.counts(t).Scheduled, "the removal of a topic leaves those of the queue")

		require.NoError(t, f.PurgeRecords(ctx))
		require.Zero(t, f.counts(t))
		found, _, err = f.History(ctx, wakebelltype.HistoryFilter{}, "", 0)
		require.NoError(t, err)
		require.Empty(t, found)
		f.timers.NoCounts = true
		f.put(t, "uncounted")
		require.Zero(t, f.counts(t))
	})
}

// TestPublishingDoesNotDependOnCounts publishes with a key of the counts that holds
// another type, and without the right to it.
func TestPublishingDoesNotDependOnCounts(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := server.Client(t)
	require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "plain", "on", ">secret", "resetchannels", "+@all", "~mail::pending", "~mail::dlq",
		"~mail::processing*", "~mail::wakebell:published*", "~mail::wakebell:hint", "~mail::wakebell:places", "~mail::wakebell:records", "~timers_queues").Err())
	f := queueOn(t, server.Client(t, func(o *redis.Options) { o.Username, o.Password = "plain", "secret" }), "mail")
	var log bytes.Buffer
	f.timers.Logger = slog.New(slog.NewTextHandler(&log, nil))
	f.put(t, "a")
	f.put(t, "b")
	require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("not counted")), log.String())
	require.ErrorContains(t, f.PurgeRecords(t.Context()), "NOPERM")

	odd := queueOn(t, admin, "odd")
	require.NoError(t, admin.Set(t.Context(), "odd::wakebell:counts", "x", 0).Err())
	odd.put(t, "a")
	require.Len(t, odd.list(t, odd.keys.pending), 1)
}
