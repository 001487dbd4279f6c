package timers

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/metrics"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

func backlogOf(t *testing.T, all []metrics.Backlog, topic string) metrics.Backlog {
	t.Helper()
	for _, b := range all {
		if b.Topic == topic {
			return b
		}
	}
	require.Fail(t, "not in the backlog", topic)
	return metrics.Backlog{}
}

// TestBacklog reads what metrics report, of a server without other topics.
func TestBacklog(t *testing.T) {
	t.Parallel()
	for name, rdb := range map[string]*redis.Client{
		"real":     redistest.Start(t).Client(t),
		"embedded": func() *redis.Client { rdb, _ := redistest.Embedded(t); return rdb }(),
	} {
		t.Run(name, func(t *testing.T) {
			ctx, s := t.Context(), newFixture(t, rdb)
			_, err := s.Schedule(ctx, "a.due", Entry{ID: "1", At: time.Now().Add(-time.Minute)}, Entry{ID: "2", In: time.Hour})
			require.NoError(t, err)
			_, err = s.Pause(ctx, "b.later", "ann", "")
			require.NoError(t, err)
			_, err = s.Schedule(ctx, "b.later", Entry{ID: "1", In: time.Hour})
			require.NoError(t, err)
			require.NoError(t, s.Register(ctx, "a.mistyped"))
			require.NoError(t, rdb.Set(ctx, s.keys.Of("a.mistyped").Timeline, "x", 0).Err())
			listening, heard := make(chan struct{}), context.CancelFunc(nil)
			ctx, heard = context.WithCancel(ctx)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = s.Listen(ctx, []string{"a.due"}, func(h exchange.Hint) {
					if h.Kind == exchange.HintSubscribed {
						close(listening)
					}
				})
			}()
			<-listening

			all, err := s.Backlog(t.Context(), "a.")
			require.NoError(t, err)
			require.Len(t, all, 2, "other prefixes are left out")
			require.Equal(t, metrics.Backlog{Topic: "a.mistyped", Unreadable: true, Fault: "wrong_type"}, backlogOf(t, all, "a.mistyped"))
			b := backlogOf(t, all, "a.due")
			require.InDelta(t, time.Minute, b.OldestDue, float64(30*time.Second))
			b.OldestDue = 0
			require.Equal(t, metrics.Backlog{Topic: "a.due", Due: 1, Pending: 1, Nodes: 1, Ahead: []int64{0, 1, 1}}, b)
			heard()
			<-ended

			// Another node reads what this one has stored, even if timers were handled since.
			_, err = s.CancelAll(t.Context(), "b.later")
			require.NoError(t, err)
			other, err := New(rdb, wakebelltype.Keys{})
			require.NoError(t, err)
			count := &trips{}
			rdb.AddHook(count)
			all, err = other.Backlog(t.Context(), "")
			require.NoError(t, err)
			require.Equal(t, 1, count.n)
			require.Equal(t, int64(1), backlogOf(t, all, "b.later").Pending)
			require.Zero(t, backlogOf(t, all, "b.later").Nodes)
			require.True(t, backlogOf(t, all, "b.later").Paused)
			left := rdb.PTTL(t.Context(), s.keys.Backlog).Val()
			require.Positive(t, left)
			require.LessOrEqual(t, left, metrics.Lifetime(2))
		})
	}
}

// Timers become due by the clock of Redis, even if that of the node is wrong.
func TestBacklogUsesClockOfRedis(t *testing.T) {
	t.Parallel()
	rdb, server := redistest.Embedded(t)
	s := newFixture(t, rdb)
	for topic, wrong := range map[string]time.Duration{"behind": -12 * time.Hour, "ahead": 12 * time.Hour} {
		now := time.Now().Add(wrong)
		server.SetTime(now)
		for i, in := range []time.Duration{-time.Hour, 30 * time.Second, 30 * time.Minute, 23 * time.Hour, 25 * time.Hour} {
			_, err := s.Schedule(t.Context(), topic, Entry{ID: strconv.Itoa(i), At: now.Add(in)})
			require.NoError(t, err)
		}
		all, err := s.readBacklog(t.Context())
		require.NoError(t, err)
		require.Equal(t, []int64{1, 2, 3}, backlogOf(t, all, topic).Ahead)
	}
}

// TestBacklogWithoutRights has a user that may not use the shared key or ask who
// listens: it reads the topics itself.
func TestBacklogWithoutRights(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := newFixture(t, server.Client(t))
	_, err := admin.Schedule(t.Context(), "a", Entry{ID: "1"})
	require.NoError(t, err)
	require.NoError(t, admin.rdb.Do(t.Context(), "ACL", "SETUSER", "plain", "on", ">secret", "resetchannels", "+@all", "-pubsub",
		"~timers_timeline:*", "~timers_leases:*", "~timers_dead:*", "~timers_control:*", "~timers_topics").Err())
	plain, err := New(server.Client(t, func(o *redis.Options) { o.Username, o.Password = "plain", "secret" }), wakebelltype.Keys{})
	require.NoError(t, err)
	for range 2 {
		all, err := plain.Backlog(t.Context(), "")
		require.NoError(t, err)
		b := backlogOf(t, all, "a")
		require.Equal(t, int64(1), b.Due)
		require.Equal(t, int64(-1), b.Nodes, "unknown")
	}
	server.Kill()
	_, err = plain.Backlog(t.Context(), "")
	require.ErrorIs(t, err, exchange.ErrUnavailable)
}

// TestBacklogInCluster reads topics on several masters, and adds up who listens.
func TestBacklogInCluster(t *testing.T) {
	t.Parallel()
	rdb := redistest.Cluster(t).Client(t)
	s, err := New(rdb, wakebelltype.Keys{HashTag: true})
	require.NoError(t, err)
	for _, topic := range []string{"a", "b", "c", "d"} {
		_, err := s.Schedule(t.Context(), topic, Entry{ID: "1", In: time.Hour})
		require.NoError(t, err)
		sub := rdb.Subscribe(t.Context(), s.keys.Of(topic).Hint)
		defer func() { require.NoError(t, sub.Close()) }()
		_, err = sub.Receive(t.Context())
		require.NoError(t, err)
	}
	all, err := s.Backlog(t.Context(), "")
	require.NoError(t, err)
	for _, topic := range []string{"a", "b", "c", "d"} {
		require.Equal(t, metrics.Backlog{Topic: topic, Pending: 1, Nodes: 1, Ahead: []int64{0, 1, 1}}, backlogOf(t, all, topic))
	}
}
