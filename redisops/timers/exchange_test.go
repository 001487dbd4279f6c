package timers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

func z(score float64, member string) redis.Z { return redis.Z{Score: score, Member: member} }

func TestClaimInOrderAndAck(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "c", "a", "b")
		f.schedule(t, Entry{ID: "later", In: time.Hour})
		reply := f.claim(t, 2)
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

		r := f.request(10, time.Minute)
		r.Settle = []exchange.Settlement{storetest.Verdict(exchange.Ack, reply.Leases[0]), storetest.Verdict(exchange.Ack, reply.Leases[1])}
		reply = f.run(t, r)
		require.Equal(t, []string{"b"}, storetest.IDs(reply.Leases))
		require.Empty(t, reply.Refused)
		require.InDelta(t, time.Minute, reply.Next, float64(time.Millisecond), "b's lease ends next")
		f.settle(t, storetest.Verdict(exchange.Ack, reply.Leases[0]))
		stats, err := f.Stats(t.Context(), f.topic)
		require.NoError(t, err)
		require.EqualValues(t, 1, stats.Total)
		require.EqualValues(t, 1, f.rdb.HLen(t.Context(), f.key.Leases).Val(), "the sentinel alone")
	})
}

func TestNothingThere(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		reply := f.claim(t, 5)
		require.Negative(t, reply.Next)
		require.Empty(t, reply.Leases)
		require.False(t, reply.Orphans)
		require.NoError(t, f.rdb.ZAdd(t.Context(), f.key.Timeline, redis.Z{Score: 1, Member: "x"}).Err())
		require.NoError(t, f.rdb.Do(t.Context(), "ZADD", f.key.Timeline, "+inf", "x").Err())
		require.NoError(t, f.rdb.HSet(t.Context(), f.key.Payloads, "x", "never").Err())
		require.Negative(t, f.claim(t, 5).Next, "never due")
		require.True(t, f.get(t, "x").NeverDue)
	})
}

func TestNackWaitsAndCounts(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a")
		first := f.claim(t, 1).Leases[0]
		nack := storetest.Verdict(exchange.Nack, first)
		nack.Delay, nack.Reason = time.Hour, "card: declined\nagain"
		require.Empty(t, f.settle(t, nack).Refused)
		got := f.get(t, "a")
		require.Equal(t, 1, got.Claims)
		require.Equal(t, 1, got.Failures)
		require.Equal(t, first.Activation, got.Activation)
		require.Equal(t, "card: declined\nagain", got.LastError)
		require.False(t, got.Running)
		require.WithinDuration(t, time.Now().Add(time.Hour), got.Due, time.Minute)
		require.Equal(t, exchange.Superseded, f.settle(t, nack).Refused[0].Why, "a second verdict is refused")
	})
}

func TestNackAtOnceIsClaimedAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a")
		first := f.claim(t, 1).Leases[0]
		r := f.request(1, time.Minute)
		r.Settle = []exchange.Settlement{storetest.Verdict(exchange.Nack, first)}
		again := f.run(t, r).Leases[0]
		require.Equal(t, 2, again.Claims)
		require.Equal(t, 1, again.Failures)
		require.Equal(t, first.Activation, again.Activation)
	})
}

func TestADeadLetterHasPayloadAndReason(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a", "b")
		leases := f.claim(t, 2).Leases
		reject := storetest.Verdict(exchange.Bury, leases[0])
		reject.Reason = "no such account"
		nack := storetest.Verdict(exchange.Nack, leases[1])
		require.Empty(t, f.settle(t, reject, nack).Refused)
		_, err := f.Get(t.Context(), f.topic, "a")
		require.ErrorIs(t, err, redisops.ErrNotFound)
		letters, next, err := f.DeadLetters(t.Context(), f.topic, DeadFilter{}, "", 0)
		require.NoError(t, err)
		require.Empty(t, next)
		require.Len(t, letters, 1)
		d := letters[0]
		require.Equal(t, "a", d.ID)
		require.Equal(t, "body of a", string(d.Payload))
		require.Equal(t, "no such account", d.Reason)
		require.Equal(t, 1, d.Claims)
		require.Equal(t, leases[0].Activation, d.Activation)
		require.WithinDuration(t, time.Now(), d.At, time.Minute)
	})
}

func TestDeadLettersByPageAndCap(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		var names []string
		for i := range 30 {
			names = append(names, fmt.Sprintf("%02d", i))
		}
		f.due(t, names...)
		var list []exchange.Settlement
		for _, l := range f.claim(t, 30).Leases {
			list = append(list, storetest.Verdict(exchange.Bury, l))
		}
		f.settle(t, list...)
		var got []string
		after := ""
		for {
			letters, next, err := f.DeadLetters(t.Context(), f.topic, DeadFilter{}, after, 7)
			require.NoError(t, err)
			require.LessOrEqual(t, len(letters), 7)
			for _, d := range letters {
				got = append(got, d.ID)
			}
			if after = next; next == "" {
				break
			}
		}
		require.Equal(t, names, got)
		_, _, err := f.DeadLetters(t.Context(), f.topic, DeadFilter{}, "nonsense", 7)
		require.ErrorIs(t, err, redisops.ErrInvalid)
	})
}

// Redis trims a stream by whole nodes, of 100 entries by default.
func TestTheOldestDeadLettersLeaveAboveTheCap(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, numbered(450)...)
		g := f.holder(SourceOptions{DeadCap: 100})
		var list []exchange.Settlement
		for _, l := range g.claim(t, 450).Leases {
			list = append(list, storetest.Verdict(exchange.Bury, l))
		}
		require.Empty(t, g.settle(t, list...).Refused)
		stats, err := f.Stats(t.Context(), f.topic)
		require.NoError(t, err)
		require.GreaterOrEqual(t, stats.Dead, int64(100))
		require.LessOrEqual(t, stats.Dead, int64(200))
		last := f.rdb.XRevRangeN(t.Context(), f.key.Dead, "+", "-", 1).Val()
		require.Equal(t, "00449", last[0].Values["id"], "the newest stays")
	})
}

func TestReleaseRestoresTheOrder(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a", "b", "c", "d")
		leases := f.claim(t, 3).Leases
		require.Empty(t, f.settle(t, storetest.Verdict(exchange.Release, leases[1]), storetest.Verdict(exchange.Release, leases[2]), storetest.Verdict(exchange.Release, leases[0])).Refused)
		require.Zero(t, f.get(t, "b").Claims)
		require.EqualValues(t, 1, f.rdb.HLen(t.Context(), f.key.Leases).Val(), "no record is left")
		again := f.claim(t, 4).Leases
		require.Equal(t, []string{"a", "b", "c", "d"}, storetest.IDs(again))
		require.Equal(t, 1, again[0].Claims)
		require.Equal(t, leases[0].Activation, again[0].Activation)
	})
}

func TestReleaseOfARetryGoesBackToItsPlace(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a")
		nack := storetest.Verdict(exchange.Nack, f.claim(t, 1).Leases[0])
		nack.Reason = "boom"
		f.settle(t, nack)
		waiting := f.get(t, "a")
		lease := f.claim(t, 1).Leases[0]
		require.Equal(t, 2, lease.Claims)
		f.settle(t, storetest.Verdict(exchange.Release, lease))
		require.Equal(t, waiting, f.get(t, "a"))
	})
}

// TestReleaseRevivesNoOldToken checks that the token of an earlier holder stays
// void after a release by the next holder.
func TestReleaseRevivesNoOldToken(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a")
		old := f.run(t, f.request(1, time.Millisecond)).Leases[0]
		other := f.holder(SourceOptions{})
		var again []exchange.Lease
		require.Eventually(t, func() bool {
			again = other.claim(t, 1).Leases
			return len(again) == 1
		}, 30*time.Second, time.Millisecond)
		require.Empty(t, other.settle(t, storetest.Verdict(exchange.Release, again[0])).Refused)
		require.Equal(t, 1, f.get(t, "a").Claims)
		require.Equal(t, exchange.Lost, f.extend(t, time.Minute, old).Refused[0].Why)
		require.Equal(t, exchange.Lost, f.settle(t, storetest.Verdict(exchange.Ack, old)).Refused[0].Why)
	})
}

func TestExtendMovesTheToken(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a", "b")
		leases := f.claim(t, 2).Leases
		reply := f.extend(t, time.Hour, leases[0])
		require.Empty(t, reply.Refused)
		require.Equal(t, time.Hour, reply.Remaining)
		require.WithinDuration(t, reply.Now.Add(time.Hour), f.get(t, "a").LeaseEnds, time.Millisecond)
		require.Equal(t, exchange.Superseded, f.settle(t, storetest.Verdict(exchange.Ack, leases[0])).Refused[0].Why)
		renewed := leases[0]
		renewed.Token = reply.Extended
		require.Empty(t, f.settle(t, storetest.Verdict(exchange.Ack, renewed)).Refused)
	})
}

func TestRefusalsKeepTheOrderOfTheRequest(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a", "b")
		l := f.claim(t, 2).Leases
		gone := exchange.Lease{ID: "gone", Token: l[0].Token}
		lost := exchange.Lease{ID: "a", Token: "12.5"}
		r := f.request(0, time.Minute)
		r.Settle = []exchange.Settlement{
			storetest.Verdict(exchange.Release, gone), storetest.Verdict(exchange.Nack, l[0]), storetest.Verdict(exchange.Bury, lost),
			storetest.Verdict(exchange.Ack, lost), storetest.Verdict(exchange.Ack, l[1]), storetest.Verdict(exchange.Ack, l[1]),
		}
		r.Extend = []exchange.Held{storetest.Held(gone), storetest.Held(l[0]), {ID: "a", Token: "rubbish"}}
		var got []string
		for _, x := range f.run(t, r).Refused {
			got = append(got, fmt.Sprint(x.Index, x.Why))
		}
		require.ElementsMatch(t, []string{
			"0 cancelled", "2 lost", "3 lost", "5 lost", "6 cancelled", "7 lost", "8 lost",
		}, got)
	})
}

// An expired lease is claimed again with its activation and its claims.
func TestExpiredLeaseComesBack(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a")
		first := f.run(t, f.request(1, time.Millisecond)).Leases[0]
		other := f.holder(SourceOptions{})
		var again exchange.Lease
		require.Eventually(t, func() bool {
			reply := other.claim(t, 1)
			if len(reply.Leases) == 0 {
				return false
			}
			again = reply.Leases[0]
			return true
		}, 30*time.Second, time.Millisecond)
		require.Equal(t, 2, again.Claims)
		require.Equal(t, first.Activation, again.Activation)
		require.Equal(t, exchange.Lost, f.settle(t, storetest.Verdict(exchange.Ack, first)).Refused[0].Why)
		require.Empty(t, other.settle(t, storetest.Verdict(exchange.Ack, again)).Refused)
	})
}

func TestNeverSettledIsDeadLettered(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a")
		g := f.holder(SourceOptions{MaxClaims: 2, DeadCap: 1000})
		claims := 0
		require.Eventually(t, func() bool {
			claims += len(g.run(t, g.request(1, time.Millisecond)).Leases)
			stats, err := f.Stats(t.Context(), f.topic)
			return err == nil && stats.Dead == 1
		}, 30*time.Second, 2*time.Millisecond)
		require.Equal(t, 2, claims)
		letters, _, err := f.DeadLetters(t.Context(), f.topic, DeadFilter{}, "", 1)
		require.NoError(t, err)
		require.Equal(t, "never settled", letters[0].Reason)
		require.Equal(t, 2, letters[0].Claims)
	})
}

// Tokens go through Redis's own reading and printing of numbers.
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
			require.Empty(t, f.settle(t, ack).Refused, end)
		}
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
		reply := f.claim(t, 20)
		require.Equal(t, names, storetest.IDs(reply.Leases))
		var list []exchange.Settlement
		for i, l := range reply.Leases {
			require.Equal(t, "p\x00"+l.ID, string(l.Payload))
			require.Equal(t, i == 0 || i == 4 || i == 5, l.Fault != "", "%q", l.ID)
			list = append(list, storetest.Verdict(exchange.Bury, l))
		}
		require.Empty(t, f.settle(t, list...).Refused)
		stats, err := f.Stats(t.Context(), f.topic)
		require.NoError(t, err)
		require.Equal(t, Stats{Dead: int64(len(names))}, stats)
	})
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		const n = 2500
		entries := make([]Entry, n)
		for i := range entries {
			entries[i] = Entry{ID: fmt.Sprintf("%05d", i), Payload: []byte("x"), At: time.Unix(int64(i), 0)}
		}
		f.schedule(t, entries...)
		var leases []exchange.Lease
		for range n / claimMost {
			leases = append(leases, f.claim(t, n).Leases...)
		}
		require.Len(t, leases, n)
		r := f.request(n, time.Minute)
		for i, l := range leases {
			switch {
			case i < 1200:
				r.Settle = append(r.Settle, storetest.Verdict(exchange.Ack, l))
			case i < 2000:
				r.Settle = append(r.Settle, storetest.Verdict(exchange.Nack, l))
			default:
				r.Extend = append(r.Extend, storetest.Held(l))
			}
		}
		reply := f.run(t, r)
		require.Empty(t, reply.Refused)
		require.Len(t, reply.Leases, claimMost)
		require.Len(t, f.claim(t, n).Leases, 800-claimMost)
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
			"verdict":     func(r *exchange.Request) { r.Settle = make([]exchange.Settlement, 1) },
		} {
			r := good
			spoil(&r)
			_, err := f.src.Exchange(t.Context(), &r)
			require.ErrorIs(t, err, redisops.ErrInvalid, name)
			require.ErrorContains(t, err, name)
		}
	})
}
