package contents_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/embedded"
	"github.com/wakebell/wakebell/internal/embedded/contents"
)

func TestWhatIsWrittenAfterwardsIsGone(t *testing.T) {
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
		require.NoError(t, rdb.Set(ctx, "of "+text, text, 0).Err())
	}
	read := func() contents.Contents {
		all, err := contents.Of(s.Miniredis())
		require.NoError(t, err)
		return all
	}
	s.Miniredis().ClockTTL(false)
	write("kept")
	before := read()
	write("lost")
	require.NotEqual(t, before.String(), read().String())
	require.NoError(t, before.Restore(s.Miniredis()))
	require.Equal(t, before.String(), read().String())
	require.Equal(t, time.Hour, rdb.PTTL(t.Context(), "string").Val())
	require.ErrorIs(t, rdb.Get(t.Context(), "of lost").Err(), redis.Nil)
}
