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

func TestWritesAfterKeepAreLost(t *testing.T) {
	t.Parallel()
	s := embedded.Start()
	defer s.Close()
	rdb := s.Client()
	defer rdb.Close() //nolint:errcheck // the server ends too
	write := func(text string) {
		ctx := t.Context()
		require.NoError(t, rdb.Set(ctx, "string", text, time.Hour).Err())
		require.NoError(t, rdb.HSet(ctx, "hash", "field", text, text, "value").Err())
		require.NoError(t, rdb.RPush(ctx, "list", text).Err())
		require.NoError(t, rdb.SAdd(ctx, "set", text).Err())
		require.NoError(t, rdb.ZAdd(ctx, "zset", redis.Z{Score: float64(len(text)), Member: "member"}, redis.Z{Score: 0.1, Member: text}).Err())
		require.NoError(t, rdb.XAdd(ctx, &redis.XAddArgs{Stream: "stream", Values: []string{"field", text}}).Err())
		require.NoError(t, rdb.Set(ctx, "of "+text, text, time.Minute).Err())
	}
	state := func() (all []any) {
		ctx := t.Context()
		for _, cmd := range []redis.Cmder{
			rdb.Get(ctx, "string"), rdb.HGetAll(ctx, "hash"), rdb.LRange(ctx, "list", 0, -1), rdb.SMembers(ctx, "set"),
			rdb.ZRangeWithScores(ctx, "zset", 0, -1), rdb.XRange(ctx, "stream", "-", "+"), rdb.Keys(ctx, "*"),
		} {
			require.NoError(t, cmd.Err())
			all = append(all, cmd.String())
		}
		return all
	}
	write("kept")
	before := state()
	restore, err := s.Keep()
	require.NoError(t, err)
	write("lost")
	require.NotEqual(t, before, state())
	require.NoError(t, restore(10*time.Second))
	require.Equal(t, before, state())
	require.InDelta(t, time.Hour-10*time.Second, rdb.PTTL(t.Context(), "string").Val(), float64(time.Minute))
	require.NoError(t, restore(time.Minute))
	require.ErrorIs(t, rdb.Get(t.Context(), "of kept").Err(), redis.Nil, "it has expired meanwhile")
}
