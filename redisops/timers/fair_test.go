package timers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// sortedAtOnce is how many timers an exchange that has to sort sorts at least; see
// lua/due_fair.lua.
const sortedAtOnce = 800

// fairly claims up to want timers with a flow, and settles first.
func (f *fixture) fairly(t testing.TB, flow exchange.Flow, want int, settle ...exchange.Settlement) []exchange.Lease {
	t.Helper()
	r := f.Request(want, time.Minute)
	r.Flow, r.Settle = flow, settle
	reply := f.Run(t, r)
	require.Empty(t, reply.Refused)
	return reply.Leases
}

// backlog schedules n timers of a key that are due, one after the other, from an hour ago on.
// Their ids sort in their order.
func (f *fixture) backlog(t testing.TB, key string, n int) {
	t.Helper()
	base := time.Now().Add(-time.Hour)
	entries := make([]Entry, n)
	for i := range entries {
		entries[i] = Entry{ID: fmt.Sprintf("%s/%06d", key, i), Key: key, Payload: []byte("x"), At: base.Add(time.Duration(i) * time.Millisecond)}
	}
	f.schedule(t, entries...)
}

// handle claims and acks timers, up to want at a time, until done reports true of their ids in
// the order of their claims, which it returns.
func (f *fixture) handle(t testing.TB, flow exchange.Flow, want int, done func(handled []string) bool) (handled []string) {
	t.Helper()
	var settle []exchange.Settlement
	for idle := 0; !done(handled); {
		leases := f.fairly(t, flow, want, settle...)
		settle = nil
		for _, l := range leases {
			settle, handled = append(settle, ack(l)), append(handled, l.ID)
		}
		if idle++; len(leases) > 0 {
			idle = 0
		}
		require.Less(t, idle, 1000, "nothing is claimed any more")
	}
	f.fairly(t, flow, 0, settle...)
	return handled
}

func all(handled, ids []string) bool {
	return !slices.ContainsFunc(ids, func(id string) bool { return !slices.Contains(handled, id) })
}

// ofKey returns the timers of a key in the order of their claims.
func ofKey(handled []string, key string) (ids []string) {
	for _, id := range handled {
		if strings.HasPrefix(id, key+"/") {
			ids = append(ids, id)
		}
	}
	return ids
}

var fairFlows = map[string]exchange.Flow{
	"one at once":               {PerKey: 1, FairKeys: 1},
	"many at once":              {PerKey: 10_000, FairKeys: 1},
	"limits of the topic":       {PerKey: 100, FairKeys: 1, MaxInFlight: 1000},
	"rate of the key":           {KeyRateLimit: 1_000_000, KeyRatePer: time.Second, FairKeys: 1},
	"rate and bound of the key": {KeyRateLimit: 1_000_000, KeyRatePer: time.Second, PerKey: 50, FairKeys: 1},
}

// TestBacklogOfKeyDelaysOthersByOneTurn checks that a customer with many due timers delays the
// single ones of others by one turn, and by one more for each exchange that sorts.
func TestBacklogOfKeyDelaysOthersByOneTurn(t *testing.T) {
	t.Parallel()
	for name, flow := range fairFlows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, f *fixture) {
				const backlog, sorting = 5000, 5000/sortedAtOnce + 1
				f.backlog(t, "big", backlog)
				for round, want := range []int{10, 1, 10} {
					var others []string
					for i, key := range []string{"a", "b", "b", ""} {
						others = append(others, fmt.Sprint("other ", i, round))
						f.schedule(t, Entry{ID: others[i], Key: key})
					}
					handled := f.handle(t, flow, want, func(handled []string) bool { return all(handled, others) })
					last := 0
					for _, id := range others {
						last = max(last, slices.Index(handled, id))
					}
					most := 2 // b has two turns
					if round == 0 {
						most += sorting
					}
					require.LessOrEqual(t, len(ofKey(handled[:last], "big")), most)
				}
			})
		})
	}
}

// TestShareOfKeysHoldsInEverySpan checks that keys with many due timers start as many of them as
// their weights say, in any span, and in their order; also where one of them schedules
// more timers meanwhile, for instants before all others.
func TestShareOfKeysHoldsInEverySpan(t *testing.T) {
	t.Parallel()
	for name, flow := range fairFlows {
		for turn, wants := range map[int][]int{1: {1, 7}, 4: {15}} {
			for _, want := range wants {
				t.Run(fmt.Sprint(name, ", turns of ", turn, ", ", want, " at once"), func(t *testing.T) {
					t.Parallel()
					onEach(t, func(t *testing.T, f *fixture) {
						f = f.holder(SourceOptions{KeyWeights: "gold=3,silver:2=2"})
						flow := flow
						flow.FairKeys = turn
						weights := map[string]int{"gold:1": 3, "gold:2": 3, "silver:1": 1, "silver:2": 2, "plain": 1}
						if flow.PerKey == 1 && want > 1 {
							weights = map[string]int{"gold:1": 1, "silver:2": 1, "plain": 1} // no two of a turn run at once
							flow.FairKeys = 1
						}
						backlog, enough := 150, 250 // more than the script reads at once
						if strings.HasSuffix(t.Name(), "/embedded") {
							backlog, enough = 60, 120 // it is slow under the race detector
						}
						for key := range weights {
							f.backlog(t, key, backlog)
						}
						number := 0
						handled := f.handle(t, flow, want, func(handled []string) bool {
							for range 2 {
								number++
								f.schedule(t, Entry{ID: fmt.Sprintf("plain/0%05d earlier", number), Key: "plain", At: time.Unix(int64(1000-number), 0)})
							}
							return len(handled) >= enough
						})
						checkShares(t, handled, weights, flow.FairKeys)
						for key := range weights {
							if key != "plain" {
								require.IsIncreasing(t, ofKey(handled, key))
							}
						}
					})
				})
			}
		}
	}
}

// checkShares checks of all spans that the keys have had as many turns as each other, but for the
// turns at both ends.
func checkShares(t *testing.T, handled []string, weights map[string]int, turn int) {
	t.Helper()
	for from := range handled {
		counts := map[string]float64{}
		for i, id := range handled[from:] {
			key, _, _ := strings.Cut(id, "/")
			counts[key] += 1 / float64(turn*weights[key])
			least, most := counts[key], counts[key]
			for key := range weights {
				least, most = min(least, counts[key]), max(most, counts[key])
			}
			require.LessOrEqual(t, most-least, 2.001, "from %d to %d: %v", from, from+i, counts)
		}
	}
}

// TestNoTimerIsLostBetweenFairAndOtherNodes handles a backlog with nodes that have FairKeys and
// others, in turn.
func TestNoTimerIsLostBetweenFairAndOtherNodes(t *testing.T) {
	t.Parallel()
	for name, flow := range fairFlows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, f *fixture) {
				const each = 150
				keys := []string{"a", "b", "c"}
				for _, key := range keys {
					f.backlog(t, key, each)
				}
				other := flow
				other.FairKeys = 0
				handled := map[string]int{}
				var settle []exchange.Settlement
				order := map[string][]string{}
				for round := 0; len(handled) < each*len(keys); round++ {
					require.Less(t, round, 2000)
					leases := f.fairly(t, []exchange.Flow{flow, other}[round%2], 1+round%5, settle...)
					settle = nil
					for _, l := range leases {
						settle = append(settle, ack(l))
						handled[l.ID]++
						order[l.ID[:1]] = append(order[l.ID[:1]], l.ID)
					}
				}
				for _, key := range keys {
					require.Len(t, order[key], each, "each once")
					require.True(t, flow.PerKey != 1 || slices.IsSorted(order[key]))
				}
				f.fairly(t, flow, 0, settle...)
				f.noKeysLeft(t)
			})
		})
	}
}

// TestBacklogIsHandledAtOnceAfterFairKeysAreOff checks that a sweep without FairKeys wakes the
// timers that waited for turns.
func TestBacklogIsHandledAtOnceAfterFairKeysAreOff(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		fair, plain := exchange.Flow{PerKey: 50, FairKeys: 1}, exchange.Flow{PerKey: 50}
		f.backlog(t, "k", 200)
		require.Len(t, f.fairly(t, fair, 2), 2)
		require.NoError(t, f.src.SweepKeys(t.Context(), fair))
		require.EqualValues(t, 1, f.rdb.ZCount(t.Context(), f.key.Timeline, "-inf", fmt.Sprint(time.Now().Unix()+20)).Val(), "the next one alone is due")
		require.NoError(t, f.src.SweepKeys(t.Context(), plain))
		require.Len(t, f.fairly(t, plain, 100), 48)
	})
}

// TestTurnsEndWithTheirQueue checks that the turns of keys without due timers are removed, that
// all expire, and that none exist where keys take no turns.
func TestTurnsEndWithTheirQueue(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		flow := exchange.Flow{PerKey: 5}
		run := func() {
			f.backlog(t, "a", 20)
			f.backlog(t, "b", 20)
			f.handle(t, flow, 3, func(handled []string) bool { return len(handled) == 40 })
		}
		run()
		require.Zero(t, f.rdb.Exists(t.Context(), f.key.KeyTurns).Val())
		flow.FairKeys = 2
		run()
		require.NotZero(t, f.rdb.ZCard(t.Context(), f.key.KeyTurns).Val())
		require.InDelta(t, time.Hour, f.rdb.PTTL(t.Context(), f.key.KeyTurns).Val(), float64(time.Minute))
		f.schedule(t, Entry{ID: "later"})
		require.Len(t, f.fairly(t, flow, 3), 1)
		require.Zero(t, f.rdb.Exists(t.Context(), f.key.KeyTurns).Val())
	})
}

// TestTurnsOfSeveralTimersEnd checks that keys whose timers were due for long, seconds apart, do not
// start all of them before others, where fewer timers start at once than a turn has.
func TestTurnsOfSeveralTimersEnd(t *testing.T) {
	t.Parallel()
	for name, flow := range fairFlows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, f *fixture) {
				flow := flow
				flow.FairKeys = 4
				f.spread(t, "a", 100)
				f.spread(t, "b", 100)
				f.schedule(t, Entry{ID: "other", Key: "c"})
				handled := f.handle(t, flow, 1, func(handled []string) bool { return all(handled, []string{"other"}) })
				require.LessOrEqual(t, len(handled), 2*2*4+1, "two turns of each")
			})
		})
	}
}

// spread schedules n timers of a key that are due, 10 s apart, from an hour ago on.
func (f *fixture) spread(t testing.TB, key string, n int) {
	t.Helper()
	base := time.Now().Add(-time.Hour)
	for i := range n {
		f.schedule(t, Entry{ID: fmt.Sprintf("%s/%06d", key, i), Key: key, At: base.Add(time.Duration(i) * 10 * time.Second)})
	}
}

// TestKeysWithLargeTimersTakeTurns checks that a timer which was not claimed, because the answer
// was full, does not cost its key the turn.
func TestKeysWithLargeTimersTakeTurns(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f = f.holder(SourceOptions{MaxBytes: 1})
		f.backlog(t, "a", 20)
		f.backlog(t, "b", 20)
		handled := f.handle(t, exchange.Flow{PerKey: 10, FairKeys: 1}, 5, func(handled []string) bool { return len(handled) == 20 })
		checkShares(t, handled, map[string]int{"a": 1, "b": 1}, 1)
	})
}

// TestRetriesOfKeyDoNotTakeTurnsOfOthers checks that a key whose timers fail, and are due again,
// has as many turns as another.
func TestRetriesOfKeyDoNotTakeTurnsOfOthers(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f = f.holder(SourceOptions{SkipFailed: true})
		flow := exchange.Flow{PerKey: 1, FairKeys: 1}
		f.backlog(t, "fails", 20)
		f.backlog(t, "works", 20)
		var handled []string
		var settle []exchange.Settlement
		for len(handled) < 30 {
			leases := f.fairly(t, flow, 1, settle...)
			settle = nil
			for _, l := range leases {
				handled = append(handled, l.ID)
				verdict := exchange.Ack
				if strings.HasPrefix(l.ID, "fails") {
					verdict = exchange.Nack // due again at once
				}
				settle = append(settle, storetest.Verdict(verdict, l))
			}
		}
		checkShares(t, handled, map[string]int{"fails": 1, "works": 1}, 1)
	})
}
