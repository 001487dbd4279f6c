package durable

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell/internal/journal/journaltest"
)

// What is answered here is what miniredis answers.
func TestRangesOfLargeSetsAreThoseOfMiniredis(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		here := openOn(rt, journaltest.New(), Options{now: clockOf()})
		defer func() { require.NoError(rt, here.Close()) }()
		there := openOn(rt, journaltest.New(), Options{now: clockOf()})
		defer func() { require.NoError(rt, there.Close()) }()
		here.ranges.least, there.ranges.least = 1, 1<<30
		a, b := here.Client(), there.Client()
		defer func() { _, _ = a.Close(), b.Close() }()
		score := rapid.SampledFrom([]string{"-inf", "(-inf", "-1", "0", "(0", "0.5", "1", "(1", "2", "(2", "inf", "+inf"})
		plain := rapid.SampledFrom([]string{"-inf", "-1", "0", "0.5", "1", "2", "+inf"})
		name := rapid.SampledFrom([]string{"", "a", "b", "c", "1", "2", "\xff"})
		rank := rapid.IntRange(-4, 8)
		draw := func() []any {
			key := rapid.SampledFrom([]string{"z", "z", "z", "y"}).Draw(rt, "key")
			s, m := func() any { return score.Draw(rt, "score") }, func() any { return name.Draw(rt, "member") }
			r := func() any { return rank.Draw(rt, "rank") }
			return rapid.SampledFrom([]func() []any{
				func() []any { return []any{"ZADD", key, plain.Draw(rt, "score"), m(), plain.Draw(rt, "score"), m()} },
				func() []any { return []any{"ZADD", key, "GT", plain.Draw(rt, "score"), m()} },
				func() []any { return []any{"ZINCRBY", key, 1, m()} },
				func() []any { return []any{"ZREM", key, m(), m()} },
				func() []any { return []any{"ZPOPMIN", key} },
				func() []any { return []any{"ZREMRANGEBYSCORE", key, s(), s()} },
				func() []any { return []any{"RENAME", "z", "y"} },
				func() []any { return []any{"DEL", key} },
				func() []any { return []any{"PEXPIRE", key, 30} },
				func() []any { return []any{"SET", "y", "string"} },
				func() []any { return []any{"ZRANGEBYSCORE", key, s(), s()} },
				func() []any { return []any{"ZRANGEBYSCORE", key, s(), s(), "WITHSCORES", "LIMIT", r(), r()} },
				func() []any { return []any{"ZCOUNT", key, s(), s()} },
				func() []any { return []any{"ZRANGE", key, r(), r(), "WITHSCORES"} },
				func() []any {
					return []any{"EVAL", "redis.call('ZADD', KEYS[1], 1, ARGV[1]); return redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')", 1, "z", m()}
				},
			}).Draw(rt, "command")()
		}
		for range rapid.IntRange(1, 40).Draw(rt, "commands") {
			command := draw()
			want, wantErr := b.Do(t.Context(), command...).Result()
			got, gotErr := a.Do(t.Context(), command...).Result()
			require.Equal(rt, fmt.Sprint(wantErr), fmt.Sprint(gotErr), "%q", command)
			require.Equal(rt, want, got, "%q", command)
		}
	})
}

func TestOrderedSetSplitsAndMergesChunks(t *testing.T) {
	t.Parallel()
	set := &ordered{scores: map[string]float64{}, changed: map[string]struct{}{}}
	const n = 5000
	for i := range n {
		set.insert(member{float64(i * 7919 % n), fmt.Sprint(i)})
	}
	require.Greater(t, len(set.chunks), 3)
	for i := range n {
		require.Equal(t, i, set.rank(member{float64(i), ""}))
	}
	for i := range n {
		set.remove(member{float64(i * 7919 % n), fmt.Sprint(i)})
	}
	require.Empty(t, set.chunks)
	require.Empty(t, set.scores)
}
