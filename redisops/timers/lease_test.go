package timers

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

func TestReleaseRestoresOrder(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a", "b", "c", "d")
		leases := f.Claim(t, 3).Leases
		require.Empty(t, f.Settle(t, storetest.Verdict(exchange.Release, leases[1]), storetest.Verdict(exchange.Release, leases[2]), storetest.Verdict(exchange.Release, leases[0])).Refused)
		require.Zero(t, f.get(t, "b").Claims)
		require.EqualValues(t, 1, f.rdb.HLen(t.Context(), f.key.Leases).Val(), "no record is left")
		again := f.Claim(t, 4).Leases
		require.Equal(t, []string{"a", "b", "c", "d"}, storetest.IDs(again))
		require.Equal(t, 1, again[0].Claims)
		require.Equal(t, leases[0].Activation, again[0].Activation)
	})
}

func TestReleaseOfRetryGoesBackToItsPlace(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a")
		nack := storetest.Verdict(exchange.Nack, f.Claim(t, 1).Leases[0])
		nack.Reason = "boom"
		f.Settle(t, nack)
		waiting := f.get(t, "a")
		lease := f.Claim(t, 1).Leases[0]
		require.Equal(t, 2, lease.Claims)
		f.Settle(t, storetest.Verdict(exchange.Release, lease))
		require.Equal(t, waiting, f.get(t, "a"))
	})
}

// TestReleaseRevivesNoOldToken checks that the token of an earlier holder stays
// void after a release by the next holder.
func TestReleaseRevivesNoOldToken(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a")
		old := f.Run(t, f.Request(1, time.Millisecond)).Leases[0]
		other := f.holder(SourceOptions{})
		var again []exchange.Lease
		require.Eventually(t, func() bool {
			again = other.Claim(t, 1).Leases
			return len(again) == 1
		}, 30*time.Second, time.Millisecond)
		require.Empty(t, other.Settle(t, storetest.Verdict(exchange.Release, again[0])).Refused)
		require.Equal(t, 1, f.get(t, "a").Claims)
		require.Equal(t, exchange.Lost, f.Extend(t, time.Minute, old).Refused[0].Reason)
		require.Equal(t, exchange.Lost, f.Settle(t, storetest.Verdict(exchange.Ack, old)).Refused[0].Reason)
	})
}

func TestExtendMovesToken(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a", "b")
		leases := f.Claim(t, 2).Leases
		reply := f.Extend(t, time.Hour, leases[0])
		require.Empty(t, reply.Refused)
		require.Equal(t, time.Hour, reply.Remaining)
		require.WithinDuration(t, reply.Now.Add(time.Hour), f.get(t, "a").LeaseEnds, time.Millisecond)
		require.Equal(t, exchange.Superseded, f.Settle(t, storetest.Verdict(exchange.Ack, leases[0])).Refused[0].Reason)
		renewed := leases[0]
		renewed.Token = reply.Extended
		require.Empty(t, f.Settle(t, storetest.Verdict(exchange.Ack, renewed)).Refused)
	})
}

// TestExpiredLeaseComesBack checks that a timer whose lease has expired is claimed
// again with its activation and its claims.
func TestExpiredLeaseComesBack(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a")
		first := f.Run(t, f.Request(1, time.Millisecond)).Leases[0]
		other := f.holder(SourceOptions{})
		var again exchange.Lease
		require.Eventually(t, func() bool {
			reply := other.Claim(t, 1)
			if len(reply.Leases) == 0 {
				return false
			}
			again = reply.Leases[0]
			return true
		}, 30*time.Second, time.Millisecond)
		require.Equal(t, 2, again.Claims)
		require.Equal(t, first.Activation, again.Activation)
		require.Equal(t, exchange.Lost, f.Settle(t, storetest.Verdict(exchange.Ack, first)).Refused[0].Reason)
		require.Empty(t, other.Settle(t, storetest.Verdict(exchange.Ack, again)).Refused)
	})
}

// TestTokensOfAwkwardInstants checks tokens whose text changes when Redis parses
// and formats it as a number.
func TestTokensOfAwkwardInstants(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		for i, end := range []string{"4795246719.123", "4795246719.1229999", "5e9", "4795246719.0000002", "4999999999.9999990", "4795246719"} {
			id := fmt.Sprint("t", i)
			require.NoError(t, f.rdb.Do(t.Context(), "ZADD", f.key.Timeline, end, id).Err())
			require.NoError(t, f.rdb.HSet(t.Context(), f.key.Payloads, id, "x").Err())
			require.NoError(t, f.rdb.HSet(t.Context(), f.key.Leases, id, "l:1:0:1.5:"+end).Err())
			require.True(t, f.get(t, id).Running, end)
			ack := exchange.Settlement{Held: exchange.Held{ID: id, Token: exchange.Token(end)}, Verdict: exchange.Ack}
			require.Empty(t, f.Settle(t, ack).Refused, end)
		}
	})
}
