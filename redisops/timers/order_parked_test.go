//go:build !race

package timers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// TestParkedTimersCostNothing counts the commands of exchanges beside 10 and beside
// 100,000 timers that wait for one key: they are the same.
func TestParkedTimersCostNothing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	const others = 500
	of := func(waiting int) (exchanges, handOver map[string]int) {
		f := newFixture(t, server.Client(t)).on(fmt.Sprint(waiting))
		f.scheduleMany(t, "waiting", waiting+1, func(int) string { return "blocked" })
		blocked := f.perKey(t, 1, 1).Leases
		require.Len(t, blocked, 1)
		require.Empty(t, f.perKey(t, 1, 1).Leases)
		for parked := int64(0); parked < int64(waiting); {
			f.perKey(t, 1, 1)
			stats, err := f.Stats(t.Context(), f.topic)
			require.NoError(t, err)
			parked = stats.Parked
		}
		f.scheduleMany(t, "other", others, func(i int) string { return fmt.Sprint("key ", i/2) })
		require.NoError(t, f.rdb.ConfigResetStat(t.Context()).Err())
		var leases []exchange.Lease
		for handled := 0; handled < others; handled += len(leases) {
			leases = f.perKey(t, 1, 20, acks(leases)...).Leases
			require.NotEmpty(t, leases)
			for _, l := range leases {
				require.True(t, strings.HasPrefix(l.ID, "other"), l.ID)
			}
		}
		f.perKey(t, 1, 0, acks(leases)...)
		exchanges = f.calls(t)

		require.NoError(t, f.rdb.ConfigResetStat(t.Context()).Err())
		for range 5 {
			blocked = f.perKey(t, 1, 1, acks(blocked)...).Leases
			require.Len(t, blocked, 1)
		}
		return exchanges, f.calls(t)
	}
	fewExchanges, fewHandOvers := of(10)
	manyExchanges, manyHandOvers := of(100_000)
	require.Equal(t, fewExchanges, manyExchanges)
	require.Equal(t, fewHandOvers, manyHandOvers, "from one timer of the blocked key to the next")
	require.Less(t, manyHandOvers["hmget"], 5*10)
}

// TestKeysTakeTurns checks that keys with long backlogs take turns, also if the timers of
// one are due before those of all others, and that a new key does not wait for them.
func TestKeysTakeTurns(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		const keys, each = 5, 12
		f.scheduleMany(t, "t", keys*each, func(i int) string { return string(rune('a' + i/each)) })
		held := f.perKey(t, 1, keys).Leases
		require.Len(t, held, keys)
		ran := map[string]int{}
		next := func() string {
			l := held[0]
			held = append(held[1:], f.perKey(t, 1, 1, ack(l)).Leases...)
			key := ""
			if _, number, ok := strings.Cut(l.ID, "t-"); ok {
				var n int
				_, err := fmt.Sscanf(number, "%d", &n)
				require.NoError(t, err)
				key = string(rune('a' + n/each))
			}
			ran[key]++
			return key
		}
		for range keys * each / 2 {
			next()
			counts := []int{}
			for i := range keys {
				counts = append(counts, ran[string(rune('a'+i))])
			}
			require.LessOrEqual(t, slices.Max(counts)-slices.Min(counts), 1, "%v", ran)
		}
		f.schedule(t, Entry{ID: "new", Key: "new", At: time.Now().Add(-time.Millisecond)})
		waited := 0
		for next() != "" {
			waited++
		}
		require.LessOrEqual(t, waited, keys, "no more than one timer of each key ran before it")
		require.NotContains(t, storetest.IDs(held), "new")
	})
}
