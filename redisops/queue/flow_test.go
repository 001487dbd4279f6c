package queue

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// limited settles, and claims up to want messages under flow control.
func (f *fixture) limited(t testing.TB, want int, flow exchange.Flow, settle ...exchange.Settlement) *exchange.Reply {
	t.Helper()
	r := f.Request(want, time.Minute)
	r.Flow, r.Settle = flow, settle
	return f.Run(t, r)
}

func verdictsOf(v exchange.Verdict, leases []exchange.Lease) (all []exchange.Settlement) {
	for _, l := range leases {
		all = append(all, storetest.Verdict(v, l))
	}
	return all
}

// inVirtualTime runs a test on the embedded Redis with messages, whose clock is that of a
// bubble.
func inVirtualTime(t *testing.T, messages int, test func(t *testing.T, f *fixture)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		f := newFixture(t, rdb)
		for i := range messages {
			f.put(t, fmt.Sprintf("%04d", i))
		}
		test(t, f)
	})
}

func TestQueueRateLimit(t *testing.T) {
	inVirtualTime(t, 100, func(t *testing.T, f *fixture) {
		limit := exchange.Flow{RateLimit: 1, RatePer: time.Minute, RateBurst: 3}
		r := f.Request(2, time.Hour)
		r.Flow = limit
		first := f.Run(t, r)
		require.Equal(t, []string{"0000", "0001"}, payloads(first.Leases))
		require.Zero(t, first.Held, "a token is left")
		for range 5 {
			require.Equal(t, first.Leases, f.Run(t, r).Leases)
		}
		reply := f.limited(t, 10, limit)
		require.Len(t, reply.Leases, 1, "a repeated answer takes no token again")
		require.InDelta(t, time.Minute, reply.Held, float64(time.Millisecond))
		require.Zero(t, reply.Next, "more is pending")

		reply = f.limited(t, 10, limit, verdictsOf(exchange.Release, reply.Leases)...)
		require.Equal(t, []string{"0002"}, payloads(reply.Leases), "a released message gives its token back")
		reply = f.limited(t, 10, limit, verdictsOf(exchange.Ack, reply.Leases)...)
		require.Empty(t, reply.Leases)
		<-time.After(reply.Held)
		require.Len(t, f.limited(t, 10, limit).Leases, 1)
		require.Len(t, f.limited(t, 10, exchange.Flow{}).Leases, 10, "an exchange without the limit")
		<-time.After(10 * time.Minute)
		require.Zero(t, f.rdb.Exists(t.Context(), f.keys.flow).Val(), "the state expires")
	})
}

// TestLateReleaseInQueueGivesNoTokenBack checks leases that are released when their tokens
// have returned by themselves.
func TestLateReleaseInQueueGivesNoTokenBack(t *testing.T) {
	inVirtualTime(t, 100, func(t *testing.T, f *fixture) {
		limit := exchange.Flow{RateLimit: 1, RatePer: time.Second, RateBurst: 10}
		r := f.Request(10, time.Hour)
		r.Flow = limit
		first := f.Run(t, r).Leases
		require.Equal(t, first, f.Run(t, r).Leases, "a repeated answer has the same charges")
		<-time.After(9 * time.Second)
		require.Len(t, f.limited(t, 100, limit).Leases, 9)
		require.Len(t, f.limited(t, 100, limit, verdictsOf(exchange.Release, first)...).Leases, 1, "only one token has not returned")
		refused := f.limited(t, 100, limit, verdictsOf(exchange.Release, first)...)
		require.Len(t, refused.Refused, 10)
		require.Empty(t, refused.Leases)
	})
}

// TestQueueRateIsNeverExceeded checks the limit over two nodes that ask at every
// opportunity, each twice, for a long time.
func TestQueueRateIsNeverExceeded(t *testing.T) {
	inVirtualTime(t, 400, func(t *testing.T, f *fixture) {
		limit := exchange.Flow{RateLimit: 10, RatePer: time.Second, RateBurst: 5}
		nodes := []*fixture{f, f.holder(SourceOptions{})}
		began, claimed := time.Now(), 0
		for i := 0; claimed < 300; i++ {
			node := nodes[i%2]
			r := node.Request(1+i%7, time.Hour)
			r.Flow = limit
			reply := node.Run(t, r)
			require.Len(t, node.Run(t, r).Leases, len(reply.Leases))
			claimed += len(reply.Leases)
			require.LessOrEqual(t, float64(claimed), 5+10*time.Since(began).Seconds()+0.01)
			node.limited(t, 0, limit, verdictsOf(exchange.Ack, reply.Leases)...)
			<-time.After(reply.Held / 2)
		}
		require.Less(t, time.Since(began), 31*time.Second, "the rate is reached")
	})
}

func TestQueueMaxInFlight(t *testing.T) {
	inVirtualTime(t, 100, func(t *testing.T, f *fixture) {
		limit := exchange.Flow{MaxInFlight: 3}
		other := f.holder(SourceOptions{})
		leases := f.limited(t, 2, limit).Leases
		require.Len(t, leases, 2)
		mine := other.limited(t, 10, limit)
		require.Len(t, mine.Leases, 1)
		require.InDelta(t, time.Minute, mine.Held, float64(time.Second), "until a lease may have expired")

		reply := f.limited(t, 10, limit, storetest.Verdict(exchange.Ack, leases[0]))
		require.Len(t, reply.Leases, 1)
		nack := storetest.Verdict(exchange.Nack, leases[1])
		nack.Delay = time.Hour
		next := f.limited(t, 10, limit, nack)
		require.Len(t, next.Leases, 1, "a message that waits for its retry does not count")
		require.Empty(t, f.limited(t, 10, limit, nack).Leases, "a refused settlement frees nothing")

		<-time.After(50 * time.Second)
		r := other.Request(0, time.Minute)
		r.Flow = limit
		r.Extend = []exchange.Held{storetest.Held(mine.Leases[0])}
		require.Empty(t, other.Run(t, r).Refused)
		<-time.After(11 * time.Second)
		require.Len(t, f.limited(t, 10, limit).Leases, 2, "two leases have expired, one was extended")
	})
}

// TestQueueMaxInFlightCountsExtendedLeases extends a lease for longer than the state would
// stay after the claim.
func TestQueueMaxInFlightCountsExtendedLeases(t *testing.T) {
	inVirtualTime(t, 1, func(t *testing.T, f *fixture) {
		limit := exchange.Flow{MaxInFlight: 1}
		held := storetest.Held(f.limited(t, 1, limit).Leases[0])
		for range 3 {
			<-time.After(35 * time.Second)
			r := f.Request(0, time.Minute)
			r.Flow, r.Extend = limit, []exchange.Held{held}
			require.Empty(t, f.Run(t, r).Refused)
		}
		<-time.After(20 * time.Second)
		f.put(t, "late")
		require.Empty(t, f.limited(t, 1, limit).Leases)
		<-time.After(41 * time.Second)
		require.Len(t, f.limited(t, 1, limit).Leases, 1, "it has expired")
	})
}

// TestQueueLimitsWithManySettlements checks an exchange whose settlements are sent in
// several steps.
func TestQueueLimitsWithManySettlements(t *testing.T) {
	inVirtualTime(t, 500, func(t *testing.T, f *fixture) {
		limit := exchange.Flow{MaxInFlight: 400}
		leases := f.limited(t, 500, limit).Leases
		require.Len(t, leases, 400)
		require.Len(t, f.limited(t, 500, limit, verdictsOf(exchange.Ack, leases)...).Leases, 100)
	})
}

func TestQueueWithoutLimitsPaysNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.put(t, "a", "b", "c")
		require.Len(t, f.Claim(t, 1).Leases, 1)
		require.NotContains(t, f.left(t), f.keys.flow)
		require.Len(t, f.limited(t, 1, exchange.Flow{PerKey: 1, KeyRateLimit: 1, RatePer: time.Second}).Leases, 1, "limits per key do not apply")
		require.False(t, slices.ContainsFunc(f.left(t), func(key string) bool { return key == "wakebell:flow" }))
		require.NoError(t, f.rdb.LPush(t.Context(), f.keys.flow, "x").Err())
		r := f.Request(1, time.Minute)
		r.Flow = exchange.Flow{MaxInFlight: 1}
		_, err := f.src.Exchange(t.Context(), r)
		require.ErrorIs(t, err, wakebelltype.ErrWrongType)
		require.ErrorContains(t, err, f.keys.flow)
	})
}

// TestPurgedMessagesAreNotInFlight checks that leases that an operator deletes no longer
// count, and that pollers that wait for their end are notified.
func TestPurgedMessagesAreNotInFlight(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		limit := exchange.Flow{MaxInFlight: 2}
		f.put(t, "a", "b", "c")
		require.Len(t, f.limited(t, 9, limit).Leases, 2)
		require.NotZero(t, f.limited(t, 9, limit).Held, "it waits for the end of a lease")
		hints := f.rdb.Subscribe(t.Context(), f.keys.hint)
		t.Cleanup(func() { _ = hints.Close() })
		_, err := hints.Receive(t.Context())
		require.NoError(t, err)
		heard := hints.Channel()
		n, err := f.Purge(t.Context(), true)
		require.NoError(t, err)
		require.EqualValues(t, 3, n)
		require.Regexp(t, `^free \d`, (<-heard).Payload)
		f.put(t, "next")
		require.Len(t, f.limited(t, 9, limit).Leases, 1)
	})
}
