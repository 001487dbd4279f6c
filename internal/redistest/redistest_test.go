package redistest_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"runtime"
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

func TestPauseHoldsAnswer(t *testing.T) {
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

// The port of a server stays reserved while the server is down.
func TestPortIsReservedWhileItsServerIsDown(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Kill()
	_, port, err := net.SplitHostPort(s.Addr)
	require.NoError(t, err)
	if runtime.GOOS == "linux" {
		_, err = net.Listen("unix", "@wakebell-redistest-"+port)
		require.ErrorContains(t, err, "in use")
	}
	s.Restart(t)
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

func TestEmbeddedFollowsBubble(t *testing.T) {
	t.Parallel()
	// Twice, because a timer that outlives its bubble breaks the next one.
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			rdb, _ := redistest.Embedded(t)
			before := rdb.Time(t.Context()).Val()
			<-time.After(3 * time.Hour)
			require.Equal(t, 3*time.Hour, rdb.Time(t.Context()).Val().Sub(before))

			require.NoError(t, rdb.Set(t.Context(), "k", "v", time.Minute).Err())
			<-time.After(2 * time.Minute)
			require.ErrorIs(t, rdb.Get(t.Context(), "k").Err(), redis.Nil)
		})
	}
}

func TestClusterKeepsKeysOnItsMasters(t *testing.T) {
	t.Parallel()
	masters := redistest.Cluster(t)
	rdb := masters.Client(t)
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		require.NoError(t, rdb.Set(t.Context(), key, "x", 0).Err())
	}
	for _, m := range masters {
		require.Positive(t, m.Client(t).DBSize(t.Context()).Val(), m.Addr)
	}
}

func TestSentinelFailsOver(t *testing.T) {
	t.Parallel()
	w := redistest.Sentinel(t)
	rdb := w.Client(t)
	require.NoError(t, rdb.Set(t.Context(), "k", "x", 0).Err())
	require.Equal(t, int64(1), rdb.Wait(t.Context(), 1, 30*time.Second).Val())
	w.Master.Kill()
	// A Sentinel that stalled for 2 s does nothing for 30 s.
	require.Eventually(t, func() bool { return rdb.Set(t.Context(), "k", "y", 0).Err() == nil }, 90*time.Second, 50*time.Millisecond)
	require.Equal(t, "y", w.Replica.Client(t).Get(t.Context(), "k").Val())
}

func TestTLSServerRequiresCertificates(t *testing.T) {
	t.Parallel()
	s := redistest.StartTLS(t)
	pool := x509.NewCertPool()
	authority, err := os.ReadFile(s.CA)
	require.NoError(t, err)
	require.True(t, pool.AppendCertsFromPEM(authority))
	cert, err := tls.LoadX509KeyPair(s.Cert, s.Key)
	require.NoError(t, err)
	config := &tls.Config{RootCAs: pool, ServerName: s.Name, MinVersion: tls.VersionTLS12}
	dial := func(o *redis.Options) { o.Addr, o.TLSConfig, o.MaxRetries = s.TLSAddr, config, -1 }
	require.Error(t, s.Client(t, dial).Ping(t.Context()).Err())
	config.Certificates = []tls.Certificate{cert}
	require.NoError(t, s.Client(t, dial).Ping(t.Context()).Err())
}
