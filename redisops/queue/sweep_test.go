package queue

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// TestMessagesWhoseDeadlinesWereLostAreDeliveredAgain checks that a message that is held and
// has no deadline, because the key was evicted or not restored, is delivered again, but not
// while its consumer lives, and that messages of consumers without leases never are.
func TestMessagesWhoseDeadlinesWereLostAreDeliveredAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		f := newFixture(t, rdb)
		once := f.holder(SourceOptions{AtMostOnce: true})
		f.put(t, "ours once", "python's once", "alive", "dead")
		require.Len(t, once.Claim(t, 1).Leases, 1)
		require.NoError(t, f.rdb.LMove(t.Context(), f.keys.pending, f.keys.processing, "right", "left").Err())
		alive := f.Claim(t, 1).Leases[0]
		require.Len(t, f.Claim(t, 1).Leases, 1)
		require.False(t, f.Claim(t, 1).Orphans)
		require.NoError(t, f.rdb.Del(t.Context(), f.keys.deadlines).Err())
		require.True(t, f.Claim(t, 1).Orphans)
		swept, err := f.src.RemoveOrphans(t.Context())
		require.NoError(t, err)
		require.Equal(t, exchange.Swept{Mended: 2}, swept)
		require.False(t, f.Claim(t, 1).Orphans)

		<-time.After(lostLife - time.Second)
		require.Empty(t, f.Claim(t, 9).Leases, "their consumers may extend them")
		require.Empty(t, f.Extend(t, time.Hour, alive).Refused)
		<-time.After(time.Minute)
		reply := f.Claim(t, 9)
		require.Equal(t, []string{"dead"}, payloads(reply.Leases))
		require.Equal(t, 2, reply.Leases[0].Claims)
		require.Empty(t, f.Settle(t, storetest.Verdict(exchange.Ack, alive), storetest.Verdict(exchange.Ack, reply.Leases[0])).Refused)
		<-time.After(24 * time.Hour)
		require.Empty(t, f.Claim(t, 9).Leases)
		st, err := f.Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, st.Unleased)
	})
}

// TestSweepOfLeasesIgnoresWhatIsNotHeld checks that a token whose message is not held, as
// after a restore of that key alone, makes no message, that settled messages which are still
// in a long list stay settled, and that the sweep continues over many pages.
func TestSweepOfLeasesIgnoresWhatIsNotHeld(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		const n = 700
		texts := make([]string, n)
		for i := range texts {
			texts[i] = fmt.Sprint(i)
		}
		f.put(t, texts...)
		var leases []exchange.Lease
		for len(leases) < n {
			leases = append(leases, f.Claim(t, 512).Leases...)
		}
		for _, l := range leases[n/2 : n/2+40] {
			require.Empty(t, f.Settle(t, storetest.Verdict(exchange.Ack, l)).Refused)
		}
		kept := f.rdb.ZRangeWithScores(t.Context(), f.keys.deadlines, 0, 99).Val()
		require.NoError(t, f.rdb.Del(t.Context(), f.keys.deadlines).Err())
		require.NoError(t, f.rdb.ZAdd(t.Context(), f.keys.deadlines, kept...).Err())
		require.NoError(t, f.rdb.HSet(t.Context(), f.keys.tokens, "settled before", "1").Err())
		mended := 0
		for range 3 {
			swept, err := f.src.RemoveOrphans(t.Context())
			require.NoError(t, err)
			mended += swept.Mended
		}
		require.Equal(t, n-40-100, mended)
		require.EqualValues(t, n-40, f.rdb.ZCard(t.Context(), f.keys.deadlines).Val())
		require.ErrorIs(t, f.rdb.ZScore(t.Context(), f.keys.deadlines, "settled before").Err(), redis.Nil)
	})
}
