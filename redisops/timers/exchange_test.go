package timers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

func z(score float64, member string) redis.Z { return redis.Z{Score: score, Member: member} }

func TestClaimInOrderAndAck(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "c", "a", "b")
		f.schedule(t, Entry{ID: "later", In: time.Hour})
		reply := f.Claim(t, 2)
		require.Equal(t, []string{"c", "a"}, storetest.IDs(reply.Leases))
		require.Zero(t, reply.Next, "b is due")
		require.Equal(t, time.Minute, reply.Remaining)
		require.WithinDuration(t, time.Now(), reply.Now, time.Minute)
		l := reply.Leases[0]
		require.Equal(t, "body of c", string(l.Payload))
		require.Equal(t, 1, l.Claims)
		require.Empty(t, l.Fault)
		require.Equal(t, f.get(t, "c").Activation, l.Activation)
		require.True(t, f.get(t, "c").Running)

		r := f.Request(10, time.Minute)
		r.Settle = []exchange.Settlement{storetest.Verdict(exchange.Ack, reply.Leases[0]), storetest.Verdict(exchange.Ack, reply.Leases[1])}
		reply = f.Run(t, r)
		require.Equal(t, []string{"b"}, storetest.IDs(reply.Leases))
		require.Empty(t, reply.Refused)
		require.InDelta(t, time.Minute, reply.Next, float64(time.Millisecond), "b's lease ends next")
		f.Settle(t, storetest.Verdict(exchange.Ack, reply.Leases[0]))
		stats, err := f.Stats(t.Context(), f.topic)
		require.NoError(t, err)
		require.EqualValues(t, 1, stats.Total)
		require.EqualValues(t, 1, f.rdb.HLen(t.Context(), f.key.Leases).Val(), "the sentinel alone")
	})
}

func TestNothingThere(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		reply := f.Claim(t, 5)
		require.Negative(t, reply.Next)
		require.Empty(t, reply.Leases)
		require.False(t, reply.Orphans)
		require.NoError(t, f.rdb.ZAdd(t.Context(), f.key.Timeline, redis.Z{Score: 1, Member: "x"}).Err())
		require.NoError(t, f.rdb.Do(t.Context(), "ZADD", f.key.Timeline, "+inf", "x").Err())
		require.NoError(t, f.rdb.HSet(t.Context(), f.key.Payloads, "x", "never").Err())
		require.Negative(t, f.Claim(t, 5).Next, "never due")
		require.True(t, f.get(t, "x").NeverDue)
	})
}

func TestNackWaitsAndCounts(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a")
		first := f.Claim(t, 1).Leases[0]
		nack := storetest.Verdict(exchange.Nack, first)
		nack.Delay, nack.Reason = time.Hour, "card: declined\nagain"
		require.Empty(t, f.Settle(t, nack).Refused)
		got := f.get(t, "a")
		require.Equal(t, 1, got.Claims)
		require.Equal(t, 1, got.Failures)
		require.Equal(t, first.Activation, got.Activation)
		require.Equal(t, "card: declined\nagain", got.LastError)
		require.False(t, got.Running)
		require.WithinDuration(t, time.Now().Add(time.Hour), got.Due, time.Minute)
		require.Equal(t, exchange.Superseded, f.Settle(t, nack).Refused[0].Reason, "a second verdict is refused")
	})
}

func TestNackAtOnceIsClaimedAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a")
		first := f.Claim(t, 1).Leases[0]
		r := f.Request(1, time.Minute)
		r.Settle = []exchange.Settlement{storetest.Verdict(exchange.Nack, first)}
		again := f.Run(t, r).Leases[0]
		require.Equal(t, 2, again.Claims)
		require.Equal(t, 1, again.Failures)
		require.Equal(t, first.Activation, again.Activation)
	})
}

func TestSnoozeCountsNothingThoughItIsClaimedAtOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a")
		l := f.Claim(t, 1).Leases[0]
		for range 3 {
			r, snooze := f.Request(1, time.Minute), storetest.Verdict(exchange.Nack, l)
			snooze.Snoozed, snooze.Reason = true, "not yet"
			r.Settle = []exchange.Settlement{snooze}
			again := f.Run(t, r).Leases[0]
			require.Equal(t, 1, again.Claims)
			require.Zero(t, again.Failures)
			require.True(t, again.Snoozed)
			require.Equal(t, l.Activation, again.Activation)
			l = again
		}
	})
}

func TestRefusalsKeepOrderOfRequest(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a", "b")
		l := f.Claim(t, 2).Leases
		gone := exchange.Lease{ID: "gone", Token: l[0].Token}
		lost := exchange.Lease{ID: "a", Token: "12.5"}
		r := f.Request(0, time.Minute)
		r.Settle = []exchange.Settlement{
			storetest.Verdict(exchange.Release, gone), storetest.Verdict(exchange.Nack, l[0]), storetest.Verdict(exchange.DeadLetter, lost),
			storetest.Verdict(exchange.Ack, lost), storetest.Verdict(exchange.Ack, l[1]), storetest.Verdict(exchange.Ack, l[1]),
		}
		r.Extend = []exchange.Held{storetest.Held(gone), storetest.Held(l[0]), {ID: "a", Token: "rubbish"}}
		var got []string
		for _, x := range f.Run(t, r).Refused {
			got = append(got, fmt.Sprint(x.Index, x.Reason))
		}
		require.ElementsMatch(t, []string{
			"0 cancelled", "2 lost", "3 lost", "5 lost", "6 cancelled", "7 lost", "8 lost",
		}, got)
	})
}

func TestAwkwardIDsArriveWhole(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		names := []string{"", "\x00", "a\nb", "a b:c", "\xff\xfe", strings.Repeat("é", 257), "{x}", "naïve ☃"}
		for i, id := range names {
			require.NoError(t, f.rdb.ZAdd(t.Context(), f.key.Timeline, z(float64(i), id)).Err())
			require.NoError(t, f.rdb.HSet(t.Context(), f.key.Payloads, id, "p\x00"+id).Err())
		}
		reply := f.Claim(t, 20)
		require.Equal(t, names, storetest.IDs(reply.Leases))
		var list []exchange.Settlement
		for i, l := range reply.Leases {
			require.Equal(t, "p\x00"+l.ID, string(l.Payload))
			require.Equal(t, i == 0 || i == 4 || i == 5, l.Fault != "", "%q", l.ID)
			list = append(list, storetest.Verdict(exchange.DeadLetter, l))
		}
		require.Empty(t, f.Settle(t, list...).Refused)
		stats, err := f.Stats(t.Context(), f.topic)
		require.NoError(t, err)
		require.Equal(t, wakebelltype.Stats{Dead: int64(len(names))}, stats)
	})
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		const n = 6 * claimMost
		entries := make([]Entry, n)
		for i := range entries {
			entries[i] = Entry{ID: fmt.Sprintf("%05d", i), Payload: []byte("x"), At: time.Unix(int64(i), 0)}
		}
		f.schedule(t, entries...)
		var leases []exchange.Lease
		for range n / claimMost {
			leases = append(leases, f.Claim(t, n).Leases...)
		}
		require.Len(t, leases, n)
		r := f.Request(n, time.Minute)
		for i, l := range leases {
			switch {
			case i < 3*claimMost:
				r.Settle = append(r.Settle, storetest.Verdict(exchange.Ack, l))
			case i < 5*claimMost:
				r.Settle = append(r.Settle, storetest.Verdict(exchange.Nack, l))
			default:
				r.Extend = append(r.Extend, storetest.Held(l))
			}
		}
		reply := f.Run(t, r)
		require.Empty(t, reply.Refused)
		require.Len(t, reply.Leases, claimMost)
		require.Len(t, f.Claim(t, n).Leases, claimMost)
		require.Equal(t, 2, reply.Leases[claimMost-1].Claims)
	})
}

func TestRequestsAreChecked(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		good := exchange.Request{Incarnation: "i", Sequence: 1, LeaseTTL: time.Second, Want: 1}
		for name, spoil := range map[string]func(*exchange.Request){
			"incarnation": func(r *exchange.Request) { r.Incarnation = "" },
			"stream":      func(r *exchange.Request) { r.Stream = -1 },
			"sequence":    func(r *exchange.Request) { r.Sequence = 0 },
			"want":        func(r *exchange.Request) { r.Want = -1 },
			"lease ttl":   func(r *exchange.Request) { r.LeaseTTL = 0 },
			"ahead":       func(r *exchange.Request) { r.Ahead = 2 * time.Second },
			"verdict":     func(r *exchange.Request) { r.Settle = make([]exchange.Settlement, 1) },
		} {
			r := good
			spoil(&r)
			_, err := f.src.Exchange(t.Context(), &r)
			require.ErrorIs(t, err, wakebelltype.ErrInvalid, name)
			require.ErrorContains(t, err, name)
		}
	})
}
