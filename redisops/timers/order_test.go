package timers

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// perKey claims up to want timers, at most n of a key at once, and settles first.
func (f *fixture) perKey(t testing.TB, n, want int, settle ...exchange.Settlement) *exchange.Reply {
	t.Helper()
	r := f.Request(want, time.Minute)
	r.Flow = exchange.Flow{PerKey: n}
	r.Settle = settle
	return f.Run(t, r)
}

// dueOf schedules timers of a key that are due now, one after the other.
func (f *fixture) dueOf(t testing.TB, key string, ids ...string) {
	t.Helper()
	base := time.Now().Add(-time.Hour)
	for i, id := range ids {
		f.schedule(t, Entry{ID: id, Key: key, Payload: []byte("body of " + id), At: base.Add(time.Duration(i) * time.Second)})
	}
}

func ack(l exchange.Lease) exchange.Settlement { return storetest.Verdict(exchange.Ack, l) }

// noKeysLeft checks that nothing of ended timers remains.
func (f *fixture) noKeysLeft(t testing.TB) {
	t.Helper()
	require.NoError(t, f.src.SweepKeys(t.Context(), exchange.Flow{PerKey: 1}))
	require.Zero(t, f.rdb.Exists(t.Context(), f.key.order()...).Val(), "keys are left")
}

func TestTimersOfKeyRunOneAtATime(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.dueOf(t, "k", "c", "a", "b")
		f.dueOf(t, "other", "o1", "o2")
		f.due(t, "free")
		reply := f.perKey(t, 1, 10)
		require.ElementsMatch(t, []string{"c", "o1", "free"}, storetest.IDs(reply.Leases))
		require.Empty(t, f.perKey(t, 1, 10).Leases)
		held := map[string]exchange.Lease{}
		for _, l := range reply.Leases {
			held[l.ID] = l
		}
		stats, err := f.Stats(t.Context(), f.topic)
		require.NoError(t, err)
		require.EqualValues(t, 3, stats.Parked)
		require.EqualValues(t, 3, stats.Leased)
		require.Zero(t, stats.Due)
		parked := f.get(t, "a")
		require.True(t, parked.Parked)
		require.Equal(t, "k", parked.Key)
		require.WithinDuration(t, time.Now().Add(-time.Hour), parked.Due, time.Minute)

		reply = f.perKey(t, 1, 10, ack(held["c"]))
		require.Equal(t, []string{"a"}, storetest.IDs(reply.Leases), "the next of the key, in the same exchange")
		require.Equal(t, parked.Due, reply.Leases[0].Activation)
		require.Equal(t, 1, reply.Leases[0].Claims)
		reply = f.perKey(t, 1, 10, ack(reply.Leases[0]), ack(held["o1"]), ack(held["free"]))
		require.ElementsMatch(t, []string{"b", "o2"}, storetest.IDs(reply.Leases))
		require.Empty(t, f.perKey(t, 1, 10, ack(reply.Leases[0]), ack(reply.Leases[1])).Leases)
		f.noKeysLeft(t)
	})
}

// A timer that is woken and claimed in one exchange is parked in Redis until the end of
// the exchange, and holds its key nevertheless.
func TestTimerThatIsWokenHoldsItsKeyAtOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.dueOf(t, "k", "a", "b")
		reply := f.perKey(t, 1, 10)
		require.True(t, f.get(t, "b").Parked)
		f.schedule(t, Entry{ID: "c", Key: "k", At: time.Now().Add(-time.Minute)}) // due, and not parked yet
		for _, want := range []string{"b", "c"} {
			reply = f.perKey(t, 1, 10, ack(reply.Leases[0]))
			require.Equal(t, []string{want}, storetest.IDs(reply.Leases))
			require.Equal(t, 1, reply.Leases[0].Claims)
		}
		require.Empty(t, f.perKey(t, 1, 10, ack(reply.Leases[0])).Leases)
		f.noKeysLeft(t)
	})
}

// A retried timer that is woken behind others of a full exchange, or refused, keeps its
// attempts.
func TestTimerThatIsWokenAndNotClaimedKeepsItsRecord(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f = f.holder(SourceOptions{SkipFailed: true})
		f.dueOf(t, "k", "a", "b")
		nack := storetest.Verdict(exchange.Nack, f.perKey(t, 1, 10).Leases[0])
		nack.Delay = 50 * time.Millisecond
		b := f.perKey(t, 1, 10, nack).Leases
		require.Equal(t, []string{"b"}, storetest.IDs(b))
		require.Eventually(t, func() bool { return !f.get(t, "a").Due.After(f.now(t)) }, 10*time.Second, time.Millisecond)
		require.Empty(t, f.perKey(t, 1, 10).Leases)
		require.True(t, f.get(t, "a").Parked)
		f.due(t, "free")
		reply := f.perKey(t, 1, 1, ack(b[0]))
		require.Equal(t, []string{"free"}, storetest.IDs(reply.Leases), "a woken timer is behind those that are due")
		require.False(t, f.get(t, "a").Parked)
		require.Equal(t, 1, f.get(t, "a").Failures)
		reply = f.perKey(t, 1, 1)
		require.Equal(t, []string{"a"}, storetest.IDs(reply.Leases))
		require.Equal(t, 2, reply.Leases[0].Claims)
	})
}

func TestTimersOfKeyAtOneInstantRunInOrderOfScheduling(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		at := time.Now().Add(-time.Hour)
		var want []string
		for i := range 30 {
			id := fmt.Sprintf("%x", rand.Uint64())
			want = append(want, id)
			if i%3 == 0 {
				f.schedule(t, Entry{ID: id, Key: "k", At: at})
				continue
			}
			second := fmt.Sprintf("%x", rand.Uint64())
			want = append(want, second)
			f.schedule(t, Entry{ID: id, Key: "k", At: at}, Entry{ID: second, Key: "k", At: at})
		}
		var got []string
		for settle := []exchange.Settlement(nil); len(got) < len(want); {
			reply := f.perKey(t, 1, 1, settle...)
			require.LessOrEqual(t, len(reply.Leases), 1)
			settle = nil
			for _, l := range reply.Leases {
				got = append(got, l.ID)
				settle = append(settle, ack(l))
			}
		}
		require.Equal(t, want, got)
	})
}

func TestRetryOfKeyBlocksOrIsSkipped(t *testing.T) {
	t.Parallel()
	for _, skips := range []bool{false, true} {
		t.Run(fmt.Sprint(skips), func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, f *fixture) {
				f = f.holder(SourceOptions{SkipFailed: skips})
				run := func(settle ...exchange.Settlement) *exchange.Reply {
					r := f.Request(10, time.Minute)
					r.Flow = exchange.Flow{PerKey: 1}
					r.Settle = settle
					return f.Run(t, r)
				}
				f.dueOf(t, "k", "a", "b", "c")
				nack := storetest.Verdict(exchange.Nack, run().Leases[0])
				nack.Delay = 100 * time.Millisecond
				reply := run(nack)
				if skips {
					require.Equal(t, []string{"b"}, storetest.IDs(reply.Leases))
				} else {
					require.Empty(t, reply.Leases, "a waits for its retry")
				}
				b := reply.Leases
				require.Eventually(t, func() bool { return !f.get(t, "a").Due.After(f.now(t)) }, 10*time.Second, time.Millisecond)
				if skips {
					require.Empty(t, run().Leases)
					require.True(t, f.get(t, "a").Parked)
					require.Equal(t, 1, f.get(t, "a").Failures)
					reply = run(ack(b[0]))
					require.Equal(t, []string{"a"}, storetest.IDs(reply.Leases), "before c")
					require.Equal(t, 2, reply.Leases[0].Claims)
					require.Equal(t, []string{"c"}, storetest.IDs(run(ack(reply.Leases[0])).Leases))
					return
				}
				for _, id := range []string{"a", "b", "c"} {
					reply = run()
					require.Equal(t, []string{id}, storetest.IDs(reply.Leases))
					run := f.Request(0, time.Minute)
					run.Flow = exchange.Flow{PerKey: 1}
					run.Settle = []exchange.Settlement{ack(reply.Leases[0])}
					f.Run(t, run)
				}
				f.noKeysLeft(t)
			})
		})
	}
}

func TestExpiredLeaseKeepsItsKey(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.dueOf(t, "k", "a", "b")
		r := f.Request(10, 100*time.Millisecond)
		r.Flow.PerKey = 1
		f.Run(t, r)
		other := f.holder(SourceOptions{})
		require.Empty(t, other.perKey(t, 1, 10).Leases)
		require.Eventually(t, func() bool { return !f.get(t, "a").Running }, 10*time.Second, time.Millisecond)
		f.schedule(t, Entry{ID: "before", Key: "k", At: time.Now().Add(-2 * time.Hour)})
		reply := other.perKey(t, 1, 10)
		require.Equal(t, []string{"a"}, storetest.IDs(reply.Leases))
		require.Equal(t, 2, reply.Leases[0].Claims)
		require.Equal(t, []string{"before"}, storetest.IDs(other.perKey(t, 1, 10, ack(reply.Leases[0])).Leases))
	})
}

func TestEarlierTimerOfKeyComesFirst(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.dueOf(t, "k", "a", "b", "c")
		f.schedule(t, Entry{ID: "later", Key: "k", In: time.Hour})
		first := f.perKey(t, 1, 10).Leases[0]
		_, err := f.Reschedule(t.Context(), f.topic, "later", time.Now().Add(-3*time.Hour), 0)
		require.NoError(t, err)
		_, err = f.Reschedule(t.Context(), f.topic, "b", time.Now().Add(time.Hour), 0)
		require.NoError(t, err)
		require.False(t, f.get(t, "b").Parked)
		reply := f.perKey(t, 1, 10, storetest.Verdict(exchange.Release, first))
		require.Equal(t, []string{"later"}, storetest.IDs(reply.Leases), "a was released, and its key is free")
		reply = f.perKey(t, 1, 10, ack(reply.Leases[0]))
		require.Equal(t, []string{"a"}, storetest.IDs(reply.Leases))
		require.Equal(t, 1, reply.Leases[0].Claims)
		require.Equal(t, first.Activation, reply.Leases[0].Activation)
		reply = f.perKey(t, 1, 10, ack(reply.Leases[0]))
		require.Equal(t, []string{"c"}, storetest.IDs(reply.Leases))
		require.Empty(t, f.perKey(t, 1, 10, ack(reply.Leases[0])).Leases)
		found, err := f.RunNow(t.Context(), f.topic, "b")
		require.NoError(t, err)
		require.Equal(t, wakebelltype.PresencePending, found)
		require.Equal(t, []string{"b"}, storetest.IDs(f.perKey(t, 1, 10).Leases))
	})
}

func TestCancelOfHolderFreesItsKey(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.dueOf(t, "k", "a", "b", "c", "d")
		f.perKey(t, 1, 10)
		_, err := f.Cancel(t.Context(), f.topic, "a", "b")
		require.NoError(t, err)
		require.Equal(t, []string{"c"}, storetest.IDs(f.perKey(t, 1, 10).Leases))
		f.schedule(t, Entry{ID: "c", Key: "other", In: time.Hour}) // supersedes, under another key
		require.Equal(t, []string{"d"}, storetest.IDs(f.perKey(t, 1, 10).Leases))
		_, err = f.CancelAll(t.Context(), f.topic)
		require.NoError(t, err)
		require.Zero(t, f.rdb.Exists(t.Context(), f.key.order()...).Val())
	})
}

func TestDeadLetterKeepsItsKey(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.dueOf(t, "k", "a", "b")
		l := f.perKey(t, 1, 10).Leases[0]
		r := f.Request(10, time.Minute)
		r.Flow.PerKey, r.Settle = 1, []exchange.Settlement{storetest.Verdict(exchange.DeadLetter, l)}
		reply := f.Run(t, r)
		require.Equal(t, []string{"b"}, storetest.IDs(reply.Leases))
		require.Equal(t, "k", reply.DeadLettered[0].Key)
		require.Equal(t, reply.DeadLettered, f.Run(t, r).DeadLettered, "the answer is repeated")
		letters, _, err := f.DeadLetters(t.Context(), f.topic, wakebelltype.DeadFilter{}, "", 0)
		require.NoError(t, err)
		require.Equal(t, "k", letters[0].Key)
		_, err = f.Redrive(t.Context(), f.topic, wakebelltype.RedriveOptions{})
		require.NoError(t, err)
		require.Empty(t, f.perKey(t, 1, 10).Leases)
		require.Equal(t, "k", f.get(t, "a").Key)
		require.Equal(t, []string{"a"}, storetest.IDs(f.perKey(t, 1, 10, ack(reply.Leases[0])).Leases))
	})
}

func TestSeveralOfKeyAtOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.dueOf(t, "k", "a", "b", "c", "d", "e", "f")
		reply := f.perKey(t, 2, 10)
		require.Equal(t, []string{"a", "b"}, storetest.IDs(reply.Leases))
		reply = f.perKey(t, 2, 10, ack(reply.Leases[0]))
		require.Equal(t, []string{"c"}, storetest.IDs(reply.Leases))
		require.NoError(t, f.src.SweepKeys(t.Context(), exchange.Flow{PerKey: 4}))
		require.Equal(t, []string{"d", "e"}, storetest.IDs(f.perKey(t, 4, 10).Leases), "a higher limit")
		require.Empty(t, f.perKey(t, 1, 10, ack(reply.Leases[0])).Leases, "a lower limit")
		require.NoError(t, f.src.SweepKeys(t.Context(), exchange.Flow{PerKey: 0}))
		require.Equal(t, []string{"f"}, storetest.IDs(f.perKey(t, 0, 10).Leases), "no limit")
	})
}

// A lease that goes back before its handler began is the next of its key. Others started
// beside it meanwhile.
func TestLeaseThatGoesBackIsNextOfItsKey(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.dueOf(t, "k", "a", "b", "c", "d", "e", "f")
		reply := f.perKey(t, 2, 10)
		require.Equal(t, []string{"a", "b"}, storetest.IDs(reply.Leases))
		a, beside := reply.Leases[0], reply.Leases[1]
		for _, id := range []string{"c", "d"} {
			reply = f.perKey(t, 2, 10, ack(beside))
			require.Equal(t, []string{id}, storetest.IDs(reply.Leases))
			beside = reply.Leases[0]
		}
		f.perKey(t, 2, 0, storetest.Verdict(exchange.Release, a))
		reply = f.perKey(t, 2, 10)
		require.Equal(t, []string{"a"}, storetest.IDs(reply.Leases))
		require.Equal(t, 1, reply.Leases[0].Claims)
		require.Equal(t, []string{"e", "f"}, storetest.IDs(f.perKey(t, 2, 10, ack(reply.Leases[0]), ack(beside)).Leases))
	})
}

func TestPeerThatEndsHolder(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.dueOf(t, "k", "a", "b", "c", "d")
		f.perKey(t, 1, 10)
		f.peerCommit(t, "a")
		f.peerCommit(t, "b")
		require.Empty(t, f.perKey(t, 1, 10).Leases, "nothing has been looked at")
		require.NoError(t, f.src.SweepKeys(t.Context(), exchange.Flow{PerKey: 1}))
		require.True(t, f.src.ByKey())
		require.Equal(t, []string{"c"}, storetest.IDs(f.perKey(t, 1, 10).Leases))
		f.peerPublish(t, "c", float64(time.Now().Add(time.Hour).Unix())) // moves it
		f.schedule(t, Entry{ID: "e", Key: "k", At: time.Now().Add(-time.Minute)})
		reply := f.perKey(t, 1, 10)
		require.Empty(t, reply.Leases, "e is later than d")
		require.Equal(t, []string{"d"}, storetest.IDs(f.perKey(t, 1, 10).Leases))
	})
}

func TestRepeatedExchangeParksAndWakesOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.dueOf(t, "k", "a", "b", "c")
		first := f.perKey(t, 1, 10)
		r := f.Request(10, time.Minute)
		r.Flow.PerKey, r.Settle = 1, []exchange.Settlement{ack(first.Leases[0])}
		reply := f.Run(t, r)
		require.Equal(t, []string{"b"}, storetest.IDs(reply.Leases))
		again := f.Run(t, r)
		require.Equal(t, storetest.IDs(reply.Leases), storetest.IDs(again.Leases))
		require.True(t, f.get(t, "c").Parked)
		require.Equal(t, []string{"c"}, storetest.IDs(f.perKey(t, 1, 10, ack(again.Leases[0])).Leases))
	})
}

func TestKeysOfAnyBytes(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		keys := []string{"\x00", "\xff", "k", "kk", "k\x00", "1 a", strings.Repeat("\xff", MaxKey), "é"}
		for i, key := range keys {
			f.dueOf(t, key, fmt.Sprintf("%da", i), fmt.Sprintf("%db", i))
			require.Equal(t, key, f.get(t, fmt.Sprintf("%da", i)).Key)
		}
		reply := f.perKey(t, 1, 100)
		require.Len(t, reply.Leases, len(keys))
		var settle []exchange.Settlement
		for _, l := range reply.Leases {
			require.Contains(t, l.ID, "a")
			settle = append(settle, ack(l))
		}
		reply = f.perKey(t, 1, 100, settle...)
		require.Len(t, reply.Leases, len(keys))
		for _, l := range reply.Leases {
			f.perKey(t, 1, 0, ack(l))
		}
		f.noKeysLeft(t)
	})
	_, err := checkedBatch("t", []Entry{{ID: "a", Key: strings.Repeat("k", MaxKey+1)}})
	require.ErrorContains(t, err, "key: 513 bytes")
}
