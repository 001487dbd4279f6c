package timers

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// peerPublish and peerCommit send the commands of faststream-redis-timers.
func (f *fixture) peerPublish(t testing.TB, id string, score float64) {
	t.Helper()
	pipe := f.rdb.TxPipeline()
	pipe.ZAdd(t.Context(), f.key.Timeline, z(score, id))
	pipe.HSet(t.Context(), f.key.Payloads, id, "peer's "+id)
	_, err := pipe.Exec(t.Context())
	require.NoError(t, err)
}

func (f *fixture) peerCommit(t testing.TB, id string) {
	t.Helper()
	require.NoError(t, f.rdb.ZRem(t.Context(), f.key.Timeline, id).Err())
	require.NoError(t, f.rdb.HDel(t.Context(), f.key.Payloads, id).Err())
}

func TestPeersTimersAreClaimed(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.peerPublish(t, "py", 1753445.678901)
		lease := f.Claim(t, 1).Leases[0]
		require.Equal(t, "peer's py", string(lease.Payload))
		require.Equal(t, time.UnixMicro(1753445678901).UTC(), lease.Activation)
		require.Empty(t, f.Settle(t, storetest.Verdict(exchange.Ack, lease)).Refused)
	})
}

// TestPeerReschedulesWhatWeHold checks that a record is void once another program
// has written the score.
func TestPeerReschedulesWhatWeHold(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a")
		lease := f.Claim(t, 1).Leases[0]
		f.peerPublish(t, "a", 77)
		got := f.get(t, "a")
		require.False(t, got.Running)
		require.Zero(t, got.Claims)
		require.Equal(t, time.Unix(77, 0).UTC(), got.Activation)
		require.Equal(t, exchange.Superseded, f.Settle(t, storetest.Verdict(exchange.Ack, lease)).Refused[0].Reason)
		again := f.Claim(t, 1).Leases[0]
		require.Equal(t, 1, again.Claims)
		require.Equal(t, "peer's a", string(again.Payload))
		f.peerCommit(t, "a")
		require.Equal(t, exchange.Cancelled, f.Extend(t, time.Minute, again).Refused[0].Reason)
		require.True(t, f.Claim(t, 1).Orphans, "the lease record remains")
		swept, err := f.src.RemoveOrphans(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, swept.Removed)
		require.False(t, f.Claim(t, 1).Orphans)
	})
}

func TestBrokenEntriesHeal(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "good")
		require.NoError(t, f.rdb.ZAdd(t.Context(), f.key.Timeline, z(1, "no payload"), z(2, "empty payload")).Err())
		require.NoError(t, f.rdb.HSet(t.Context(), f.key.Payloads, "empty payload", "").Err())
		require.NoError(t, f.rdb.Do(t.Context(), "ZADD", f.key.Timeline, "-inf", "minus").Err())
		require.NoError(t, f.rdb.HSet(t.Context(), f.key.Payloads, "minus", "x").Err())
		_, err := f.Get(t.Context(), f.topic, "no payload")
		require.ErrorIs(t, err, wakebelltype.ErrNotFound)
		reply := f.Claim(t, 10)
		require.Equal(t, []string{"minus", "empty payload", "good"}, storetest.IDs(reply.Leases))
		require.Equal(t, 1, reply.Healed)
		require.Equal(t, "no payload", reply.DeadLettered[0].ID)
		require.WithinDuration(t, reply.Now, reply.Leases[0].Activation, time.Microsecond)
		require.Empty(t, f.Settle(t, storetest.Verdict(exchange.Release, reply.Leases[0])).Refused)
		require.Equal(t, "minus", f.Claim(t, 1).Leases[0].ID)
	})
}

func TestHealSweepsOrphans(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "live")
		f.Claim(t, 1)
		f.schedule(t, Entry{ID: "pending", Payload: make([]byte, 1<<20), In: time.Hour})
		for i := range 700 {
			if i < 100 { // more would be lost timers
				require.NoError(t, f.rdb.HSet(t.Context(), f.key.Payloads, fmt.Sprint("orphan", i), "x").Err())
			}
			require.NoError(t, f.rdb.HSet(t.Context(), f.key.Leases, fmt.Sprint("orphan", i), "l:1:0:1:2").Err())
		}
		require.True(t, f.Claim(t, 1).Orphans)
		swept, err := f.src.RemoveOrphans(t.Context())
		require.NoError(t, err)
		require.Equal(t, 800, swept.Removed)
		require.False(t, f.Claim(t, 1).Orphans)
		require.EqualValues(t, 2, f.rdb.HLen(t.Context(), f.key.Payloads).Val())
		require.EqualValues(t, 2, f.rdb.HLen(t.Context(), f.key.Leases).Val(), "a lease and the sentinel")
		require.True(t, f.get(t, "live").Running)
	})
}

// TestWithoutItsRecordLeaseIsStillGood checks that deleting the lease records by
// hand loses attempts, not timers.
func TestWithoutItsRecordLeaseIsStillGood(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a", "b", "c", "d")
		l := f.Claim(t, 4).Leases
		require.NoError(t, f.rdb.Del(t.Context(), f.key.Leases).Err())
		r := f.Request(0, time.Minute)
		r.Settle = []exchange.Settlement{storetest.Verdict(exchange.Ack, l[0]), storetest.Verdict(exchange.Nack, l[1]), storetest.Verdict(exchange.Release, l[2])}
		r.Extend = []exchange.Held{storetest.Held(l[3])}
		require.Empty(t, f.Run(t, r).Refused)
		require.Equal(t, 1, f.get(t, "b").Failures)
		require.Zero(t, f.get(t, "c").Claims)
		require.True(t, f.get(t, "d").Running)
	})
}

// TestRecordWithoutActivationIsVoid checks that a record with an unreadable
// activation is void; otherwise every claim of the timer would return an unreadable
// reply.
func TestRecordWithoutActivationIsVoid(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a")
		score := f.rdb.ZScore(t.Context(), f.key.Timeline, "a").Val()
		for _, activation := range []string{"", "x"} {
			text := "w:3:1:" + activation + ":" + strconv.FormatFloat(score, 'g', 17, 64)
			require.NoError(t, f.rdb.HSet(t.Context(), f.key.Leases, "a", text).Err())
			lease := f.Claim(t, 1).Leases[0]
			require.Equal(t, 1, lease.Claims)
			f.Settle(t, storetest.Verdict(exchange.Release, lease))
		}
	})
}
