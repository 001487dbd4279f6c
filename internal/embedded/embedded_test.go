package embedded_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/embedded"
	"github.com/wakebell/wakebell/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestKeysExpireByClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := embedded.Start()
		defer s.Close()
		rdb := s.Client()
		defer func() { require.NoError(t, rdb.Close()) }()

		require.NoError(t, rdb.Set(t.Context(), "k", "v", time.Minute).Err())
		<-time.After(59 * time.Second)
		require.Equal(t, "v", rdb.Get(t.Context(), "k").Val())
		<-time.After(time.Second)
		require.Zero(t, rdb.Exists(t.Context(), "k").Val())
		now, err := rdb.Time(t.Context()).Result()
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), now, time.Millisecond)
	})
}

func TestServersShareNothing(t *testing.T) {
	a, b := embedded.Start(), embedded.Start()
	defer a.Close()
	defer b.Close()
	first, second := a.Client(), b.Client()
	defer func() { require.NoError(t, first.Close()) }()
	defer func() { require.NoError(t, second.Close()) }()
	require.NoError(t, first.Set(t.Context(), "k", "v", 0).Err())
	require.Zero(t, second.Exists(t.Context(), "k").Val())
}

func TestCloseWithoutConnection(*testing.T) {
	embedded.Start().Close()
}

// A client that is still open may dial after the server was closed.
func TestCloseIsFinal(t *testing.T) {
	s := embedded.Start()
	rdb := s.Client()
	defer func() { require.NoError(t, rdb.Close()) }()
	require.NoError(t, rdb.Ping(t.Context()).Err())
	s.Close()
	require.ErrorContains(t, rdb.Ping(t.Context()).Err(), "closed")
	_, err := s.Options().Dialer(t.Context(), "tcp", "127.0.0.1:6379")
	require.ErrorContains(t, err, "embedded redis: closed")
}

// A pipeline of 10 MiB does not deadlock.
func TestPipelines(t *testing.T) {
	s := embedded.Start()
	defer s.Close()
	rdb := s.Client()
	defer func() { require.NoError(t, rdb.Close()) }()
	large := strings.Repeat("x", 1<<20)
	_, err := rdb.TxPipelined(t.Context(), func(pipe redis.Pipeliner) error {
		for i := range 10 {
			pipe.HSet(t.Context(), "h", i, large)
		}
		return nil
	})
	require.NoError(t, err)
	require.EqualValues(t, 10, rdb.HLen(t.Context(), "h").Val())
}
