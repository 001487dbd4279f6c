package timers

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestOverview checks that a fault of one topic is reported there and does not
// affect the others.
func TestOverview(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		paused, mangled, mistyped := f.on(f.topic+"-paused"), f.on(f.topic+"-mangled"), f.on(f.topic+"-mistyped")
		f.due(t, "a", "b")
		_, err := paused.Pause(ctx, paused.topic, "ada", "why")
		require.NoError(t, err)
		mangled.due(t, "a")
		require.NoError(t, f.rdb.HSet(ctx, mangled.key.Control, "lease_ttl", "soon").Err())
		require.NoError(t, f.rdb.Set(ctx, mistyped.key.Timeline, "x", 0).Err())
		require.NoError(t, f.rdb.HSet(ctx, mistyped.key.Control, "max_attempts", "7").Err())

		all, err := f.Overview(ctx, f.topic, paused.topic, mangled.topic, mistyped.topic)
		require.NoError(t, err)
		require.Equal(t, f.topic, all[0].Topic)
		require.NoError(t, all[0].Err)
		require.Equal(t, int64(2), all[0].Stats.Due)
		require.True(t, all[1].Stats.Paused)
		require.Equal(t, "why", all[1].Control.Reason)
		require.ErrorContains(t, all[2].Err, `"lease_ttl"`)
		require.Equal(t, int64(1), all[2].Stats.Due)
		require.Zero(t, all[2].Control)
		require.ErrorIs(t, all[3].Err, wakebelltype.ErrWrongType)
		require.Equal(t, 7, all[3].Control.Settings.MaxAttempts)

		none, err := f.Overview(ctx)
		require.NoError(t, err)
		require.Empty(t, none)
		_, err = f.Overview(ctx, f.topic, "")
		require.ErrorIs(t, err, wakebelltype.ErrInvalid)
	})
}

// TestOverviewReportsDamage checks that an overview says what was lost of a topic, and is
// silent about the remains of ended timers.
func TestOverviewReportsDamage(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		damage := func() string {
			all, err := f.Overview(t.Context(), f.topic)
			require.NoError(t, err)
			require.NoError(t, all[0].Err)
			return all[0].Damage
		}
		f.lostTimeline(t, 100)
		require.Empty(t, damage())
		f.lostTimeline(t, 101)
		require.Contains(t, damage(), fmt.Sprintf("101 of 101 payloads have no timer in %q", f.key.Timeline))
		f.schedule(t, Entry{ID: "later", In: time.Hour})
		for i := range 101 {
			f.do(t, "ZADD", f.key.Timeline, "9e9", fmt.Sprint("lost", i))
		}
		require.Empty(t, damage())
		f.do(t, "DEL", f.key.Payloads)
		require.Contains(t, damage(), fmt.Sprintf("102 of 102 timers have no payload in %q", f.key.Payloads))
		f.do(t, "SET", f.key.Payloads, "of another type")
		require.Empty(t, damage(), "unknown")
	})
}

// trips is a hook that counts round trips.
type trips struct{ n int }

func (c *trips) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { c.n++; return next(ctx, cmd) }
}

func (c *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { c.n++; return next(ctx, cmds) }
}

func TestOverviewOfManyTopicsTakesFewRoundTrips(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s, err := New(server.Client(t, func(o *redis.Options) { o.MaxRetries = -1 }), wakebelltype.Keys{})
	require.NoError(t, err)
	topics := numbered(250)
	_, err = s.Overview(t.Context(), topics...) // loads the script
	require.NoError(t, err)
	counted := &trips{}
	s.RDB.AddHook(counted)
	all, err := s.Overview(t.Context(), topics...)
	require.NoError(t, err)
	require.Len(t, all, 250)
	require.Equal(t, 4, counted.n)

	server.Stop()
	_, err = s.Overview(t.Context(), topics...)
	require.ErrorIs(t, err, exchange.ErrUnavailable)
}

// TestOverviewOfCluster checks topics on all masters of a Cluster, one of which is
// down.
func TestOverviewOfCluster(t *testing.T) {
	t.Parallel()
	masters := redistest.Cluster(t, "--cluster-require-full-coverage", "no")
	s, err := New(masters.Client(t), wakebelltype.Keys{HashTag: true})
	require.NoError(t, err)
	topics := numbered(20)
	for _, topic := range topics {
		_, err := s.Schedule(t.Context(), topic, Entry{ID: "x"})
		require.NoError(t, err)
	}
	all, err := s.Overview(t.Context(), topics...)
	require.NoError(t, err)
	for i, o := range all {
		require.NoError(t, o.Err)
		require.Equal(t, topics[i], o.Topic)
		require.Equal(t, int64(1), o.Stats.Total, o.Topic)
	}
	masters[0].Kill()
	all, err = s.Overview(t.Context(), topics...)
	require.NoError(t, err)
	down := 0
	for _, o := range all {
		if slot := layout.SlotOf(s.keys.Of(o.Topic).Timeline); slot < layout.Slots/3 {
			down++
			require.ErrorIs(t, o.Err, exchange.ErrUnavailable)
		} else {
			require.NoError(t, o.Err, fmt.Sprint(slot))
		}
	}
	require.Positive(t, down)
}
