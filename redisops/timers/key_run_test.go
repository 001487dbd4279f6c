package timers

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// runOf claims up to want timers, of a key up to n in a key run, and settles first.
func (f *fixture) runOf(t testing.TB, n, want int, settle ...exchange.Settlement) *exchange.Reply {
	t.Helper()
	r := f.Request(want, time.Minute)
	r.Flow, r.KeyRun, r.Settle = exchange.Flow{PerKey: 1}, n, settle
	return f.Run(t, r)
}

// order returns the leases as "id" or "id>the one that it follows".
func order(r *exchange.Reply) (all []string) {
	for i, l := range r.Leases {
		if r.KeyRuns != nil && r.KeyRuns[i] > 0 {
			all = append(all, l.ID+">"+r.Leases[r.KeyRuns[i]-1].ID)
		} else {
			all = append(all, l.ID)
		}
	}
	return all
}

func TestKeyRunHasNextTimersOfKey(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.dueOf(t, "k", numbered(12)...)
		f.dueOf(t, "other", "o1", "o2")
		f.due(t, "free")
		first := f.runOf(t, 5, 20)
		require.ElementsMatch(t, []string{"00000", "00001>00000", "00002>00001", "00003>00002", "00004>00003", "o1", "o2>o1", "free"}, order(first))
		require.Empty(t, f.runOf(t, 5, 20).Leases, "the key is held")
		require.Empty(t, f.holder(SourceOptions{}).perKey(t, 1, 20).Leases, "for others too")

		require.Empty(t, f.runOf(t, 5, 20, acks(first.Leases[:4])...).Leases, "until the last of the run has ended")
		second := f.runOf(t, 5, 20, acks(first.Leases[4:])...)
		require.Equal(t, []string{"00005", "00006>00005", "00007>00006", "00008>00007", "00009>00008"}, order(second))
		require.Equal(t, []string{"00010", "00011>00010"}, order(f.runOf(t, 5, 2, acks(second.Leases)...)))
	})
}

// No more timers are made due than one exchange claims: others could not claim the rest.
func TestKeyRunWakesWhatItClaims(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.dueOf(t, "k", numbered(9)...)
		run := f.runOf(t, 5, 20)
		require.Len(t, run.Leases, 5)
		run = f.runOf(t, 5, 2, acks(run.Leases)...)
		require.Equal(t, []string{"00005", "00006>00005"}, order(run))
		require.Zero(t, f.stats(t).Due)
		require.Empty(t, f.runOf(t, 5, 0, acks(run.Leases)...).Leases)
		require.EqualValues(t, 1, f.stats(t).Due)
		require.Equal(t, []string{"00007"}, order(f.runOf(t, 5, 9)))
	})
}

// A timer that comes back keeps the key, and the rest of its key run follows it again.
func TestKeyRunThatIsReleasedFollowsRetry(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.dueOf(t, "k", numbered(4)...)
		run := f.runOf(t, 9, 9).Leases
		require.Len(t, run, 4)
		settle := []exchange.Settlement{ack(run[0]), storetest.Verdict(exchange.Nack, run[1])}
		settle[1].Delay = time.Hour
		for _, l := range run[2:] {
			settle = append(settle, storetest.Verdict(exchange.Release, l))
		}
		require.Empty(t, f.runOf(t, 9, 9, settle...).Leases, "the first one waits for its retry")
		require.True(t, f.get(t, "00002").Parked || f.get(t, "00003").Parked)
		_, err := f.RunNow(t.Context(), f.topic, "00001")
		require.NoError(t, err)
		again := f.runOf(t, 9, 9)
		require.Equal(t, []string{"00001"}, order(again), "alone, because it holds the key")
		require.Equal(t, []string{"00002", "00003>00002"}, order(f.runOf(t, 9, 9, acks(again.Leases)...)))
	})
}

// A repeated answer has the key runs of those leases that are still held.
func TestRepeatedAnswerHasItsKeyRuns(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.dueOf(t, "k", numbered(4)...)
		r := f.Request(9, time.Minute)
		r.Flow, r.KeyRun = exchange.Flow{PerKey: 1}, 9
		first := f.Run(t, r)
		require.Equal(t, []string{"00000", "00001>00000", "00002>00001", "00003>00002"}, order(first))
		_, err := f.Cancel(t.Context(), f.topic, "00001")
		require.NoError(t, err)
		again, err := f.src.Exchange(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, []string{"00000", "00002>00000", "00003>00002"}, order(again))
	})
}

// Timers of a key run whose node has died come back in their order, one at a time, and only when
// no other lease of it is left.
func TestKeyRunOfDeadNodeKeepsOrder(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *fixture) {
		claims := map[string]func(r *exchange.Request){
			"no key runs":         func(*exchange.Request) {},
			"one timer":           func(r *exchange.Request) { r.Want = 1 },
			"two timers":          func(r *exchange.Request) { r.Want = 2 },
			"longer key runs":     func(r *exchange.Request) { r.KeyRun = 9 },
			"key runs, one timer": func(r *exchange.Request) { r.KeyRun, r.Want = 9, 1 },
			"key rate":            func(r *exchange.Request) { r.Flow.KeyRateLimit, r.Flow.KeyRatePer = 1000, time.Second },
			"limits":              func(r *exchange.Request) { r.Flow.MaxInFlight, r.Flow.RateLimit, r.Flow.RatePer = 2, 1000, time.Second },
			"turns":               func(r *exchange.Request) { r.Flow.FairKeys = 1 },
		}
		for name, with := range claims {
			for _, extended := range []int{0, 1, 2, 3} {
				f.dueOf(t, "k", "c", "a", "e", "b", "d")
				f.dueOf(t, "other", "x", "f")
				run := f.runOf(t, 4, 9)
				require.Equal(t, []string{"c", "a>c", "e>a", "b>e"}, slices.DeleteFunc(order(run), func(of string) bool { return strings.ContainsAny(of, "xf") }))
				claim := func(settle ...exchange.Settlement) *exchange.Reply {
					r := f.Request(9, time.Minute)
					r.Flow, r.Settle = exchange.Flow{PerKey: 1}, settle
					with(r)
					return f.Run(t, r)
				}
				r := f.Request(0, time.Hour) // one of them was extended when the node died
				r.Flow, r.KeyRun, r.Extend = exchange.Flow{PerKey: 1}, 4, []exchange.Held{held(run, "caeb"[extended:extended+1])}
				require.Empty(t, f.Run(t, r).Refused)
				<-time.After(2 * time.Minute)
				var got []string
				var settle []exchange.Settlement
				for range 12 { // the first ones may only find out which is next
					reply := claim(settle...)
					settle, got = acks(reply.Leases), append(got, storetest.IDs(reply.Leases)...)
					if len(got) == 0 {
						require.NoError(t, f.src.SweepKeys(t.Context(), r.Flow))
					}
				}
				require.ElementsMatch(t, []string{"x", "f"}, got, "one of the run is leased still: %s", name)
				<-time.After(2 * time.Hour)
				got = nil
				for range 12 {
					reply := claim(settle...)
					settle, got = acks(reply.Leases), append(got, storetest.IDs(reply.Leases)...)
				}
				require.Equal(t, []string{"c", "a", "e", "b", "d"}, got, "%s, %d extended", name, extended)
				f.noKeysLeft(t)
			}
		}
	})
}

// held returns a lease of a reply for an extension.
func held(r *exchange.Reply, id string) exchange.Held {
	for _, l := range r.Leases {
		if l.ID == id {
			return exchange.Held{ID: l.ID, Token: l.Token}
		}
	}
	return exchange.Held{}
}

// A lease that a node has alone of its key keeps the key, also for a node with key runs.
func TestExpiredLeaseKeepsItsKeyBeforeKeyRun(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *fixture) {
		f.dueOf(t, "k", "a", "b")
		require.Equal(t, []string{"a"}, order(f.runOf(t, 9, 1)))
		f.schedule(t, Entry{ID: "earlier", Key: "k", At: time.Unix(1, 0)})
		<-time.After(2 * time.Minute)
		again := f.runOf(t, 9, 9)
		require.Equal(t, []string{"a"}, order(again))
		require.Equal(t, []string{"earlier", "b>earlier"}, order(f.runOf(t, 9, 9, acks(again.Leases)...)))
	})
}

// Timers of a key run whose leases expire together are due at one instant, where Redis has them by
// their ids.
func TestKeyRunThatExpiresKeepsOrder(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *fixture) {
		f.dueOf(t, "k", "c", "a", "e", "b", "d")
		require.Len(t, f.runOf(t, 4, 9).Leases, 4)
		<-time.After(2 * time.Minute)
		first := f.runOf(t, 3, 9)
		require.Equal(t, []string{"c"}, order(first), "alone")
		require.Equal(t, []string{"a", "e>a", "b>e"}, order(f.runOf(t, 3, 9, acks(first.Leases)...)))
	})
}

// A timer that has failed keeps its turn, also when its lease expires.
func TestRetryThatExpiresIsBeforeItsKeyRun(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *fixture) {
		f.dueOf(t, "k", "a", "b", "c")
		nack := storetest.Verdict(exchange.Nack, f.runOf(t, 1, 1).Leases[0])
		require.Equal(t, []string{"a"}, order(f.runOf(t, 9, 9, nack)))
		f.schedule(t, Entry{ID: "earlier", Key: "k", At: time.Unix(1, 0)})
		<-time.After(2 * time.Minute)
		again := f.runOf(t, 9, 9)
		require.Equal(t, []string{"a"}, order(again))
		require.Equal(t, []string{"earlier", "b>earlier", "c>b"}, order(f.runOf(t, 9, 9, acks(again.Leases)...)))
	})
}

// A timer that ends its nodes is leased alone after the first time: the others of its key run do not use
// up their claims with it.
func TestTimerThatEndsItsNodesIsLeasedAlone(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *fixture) {
		f = f.holder(SourceOptions{MaxClaims: 4})
		f.dueOf(t, "k", "bad", "a", "b")
		require.Len(t, f.runOf(t, 9, 9).Leases, 3)
		for range 3 {
			<-time.After(2 * time.Minute)
			require.Equal(t, []string{"bad"}, order(f.runOf(t, 9, 9)))
		}
		<-time.After(2 * time.Minute)
		r := f.runOf(t, 9, 9)
		require.Len(t, r.DeadLettered, 1)
		require.Equal(t, "bad", r.DeadLettered[0].ID)
		for len(r.Leases) == 0 {
			r = f.runOf(t, 9, 9)
		}
		require.Equal(t, []string{"a"}, order(r))
		r = f.runOf(t, 9, 9, acks(r.Leases)...)
		require.Equal(t, []string{"b"}, order(r))
		require.Equal(t, 2, r.Leases[0].Claims, "with that of the run")
	})
}

func TestEarlierTimerComesAfterKeyRun(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.dueOf(t, "k", "a", "b", "c")
		run := f.runOf(t, 2, 9)
		require.Equal(t, []string{"a", "b>a"}, order(run))
		f.schedule(t, Entry{ID: "earlier", Key: "k", At: time.Unix(1, 0)})
		require.Empty(t, f.runOf(t, 2, 9).Leases)
		require.Equal(t, []string{"earlier", "c>earlier"}, order(f.runOf(t, 2, 9, acks(run.Leases)...)))
	})
}

// A lease whose payload is lost is left out of a repeated answer, and of its runs.
func TestRepeatedAnswerLeavesOutLostPayload(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.dueOf(t, "k", "a", "b", "c")
		r := f.Request(9, time.Minute)
		r.Flow, r.KeyRun = exchange.Flow{PerKey: 1}, 9
		require.Len(t, f.Run(t, r).Leases, 3)
		f.do(t, "hdel", f.key.Payloads, "b")
		again, err := f.src.Exchange(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, []string{"a", "c>a"}, order(again))
	})
}

// A page of due timers may have some again that the claim has chosen from another page, because
// they are due later than others of their key that come after them.
func TestKeyRunThatSpansPagesHoldsItsKey(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		at := time.Now().Add(-time.Hour)
		schedule := func(key string, ids ...string) {
			for _, id := range ids {
				at = at.Add(time.Second)
				_, err := f.Schedule(t.Context(), f.topic, Entry{ID: id, Key: key, At: at})
				require.NoError(t, err)
			}
		}
		schedule("k", "holder")
		holder := f.runOf(t, 3, 1).Leases
		schedule("k", "b1", "b2", "b3")
		require.Empty(t, f.runOf(t, 3, 9).Leases)
		require.NoError(t, f.src.SweepKeys(t.Context(), exchange.Flow{})) // wakes them: they are due from now on
		require.EqualValues(t, 3, f.stats(t).Due)
		schedule("k", "a")
		schedule("v", "v01", "v02", "v03", "v04", "v05", "v06", "v07", "v08", "v09", "v10", "v11", "v12")
		run := f.runOf(t, 3, 7, acks(holder)...)
		require.ElementsMatch(t, []string{"b1", "b2>b1", "b3>b2", "v01", "v02>v01", "v03>v02"}, order(run))
		schedule("k", "c")
		for range 2 { // the first would wake the next timer of a free key
			require.Empty(t, order(f.runOf(t, 3, 7)), "both keys are held")
		}
	})
}
