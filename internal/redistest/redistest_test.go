package redistest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestSharedIsOneServer(t *testing.T) {
	t.Parallel()
	a, b := redistest.Shared(t), redistest.Shared(t)
	key := redistest.Name(t)
	require.NotEqual(t, key, redistest.Name(t))

	require.NoError(t, a.Set(t.Context(), key, "x", 0).Err())
	require.Equal(t, "x", b.Get(t.Context(), key).Val())
	require.NotContains(t, redistest.SharedAddr(t), ":6379")
}

func TestKillAndRestart(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	rdb := s.Client(t, func(o *redis.Options) { o.MaxRetries = -1 })
	addr := s.Addr
	require.NoError(t, rdb.Set(t.Context(), "kept", "x", 0).Err())

	s.Kill()
	require.Error(t, rdb.Ping(t.Context()).Err())

	s.Restart(t)
	require.Equal(t, addr, s.Addr)
	require.Equal(t, "x", s.Client(t).Get(t.Context(), "kept").Val())
}

func TestRestartWithoutPersistenceIsEmpty(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	require.NoError(t, s.Client(t).Set(t.Context(), "lost", "x", 0).Err())
	s.Restart(t)
	require.ErrorIs(t, s.Client(t).Get(t.Context(), "lost").Err(), redis.Nil)
}

func TestPauseHoldsTheAnswer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t, func(o *redis.Options) {
		o.MaxRetries = -1
		o.ContextTimeoutEnabled = true
	})
	require.NoError(t, rdb.Ping(t.Context()).Err())

	s.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.Error(t, rdb.Ping(ctx).Err())

	s.Resume()
	require.NoError(t, rdb.Ping(t.Context()).Err())
}

func TestStopOfPausedServer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Pause()
	s.Stop()
	s.Stop()
	require.Error(t, s.Client(t).Ping(t.Context()).Err())
}

func TestStartWithPassword(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--requirepass", "secret")
	rdb := s.Client(t, func(o *redis.Options) { o.Password = "secret" })
	require.NoError(t, rdb.Ping(t.Context()).Err())
}

func TestEmbeddedFollowsTheBubble(t *testing.T) {
	t.Parallel()
	// Twice: what outlives its bubble breaks the next one.
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			rdb, m := redistest.Embedded(t)
			before := rdb.Time(t.Context()).Val()
			<-time.After(3 * time.Hour)
			require.Equal(t, 3*time.Hour, rdb.Time(t.Context()).Val().Sub(before))

			require.NoError(t, rdb.Set(t.Context(), "k", "v", time.Minute).Err())
			m.FastForward(2 * time.Minute)
			require.ErrorIs(t, rdb.Get(t.Context(), "k").Err(), redis.Nil)
		})
	}
}
