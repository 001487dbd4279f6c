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

// runWithout lets a node without limits, which has looked for keys, claim up to n timers.
func (f *fixture) runWithout(t testing.TB, n int) []exchange.Lease {
	t.Helper()
	require.NoError(t, f.src.SweepKeys(t.Context(), exchange.Flow{}))
	return f.perKey(t, 0, n).Leases
}

// TestSweepLeavesNothingOfKeysOfHandledTimers has a node handle them that has not looked for
// keys: their entries stay, until a sweep finds that the topic has no timers.
func TestSweepLeavesNothingOfKeysOfHandledTimers(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.dueOf(t, "k", "a", "b")
		r := f.Request(2, time.Minute)
		for _, l := range f.Run(t, r).Leases {
			f.Settle(t, storetest.Verdict(exchange.Ack, l))
		}
		k := f.src.keys()
		left := []string{k.TimerKeys, k.KeyOrder, k.KeyStates}
		require.NotZero(t, f.rdb.Exists(t.Context(), left...).Val())
		require.NoError(t, f.src.SweepKeys(t.Context(), exchange.Flow{}))
		require.Zero(t, f.rdb.Exists(t.Context(), left...).Val())
	})
}

// TestLimitThatIsSwitchedOnCountsWhatRuns checks that no timer starts beside those that a
// node without the limit has started, until few enough run.
func TestLimitThatIsSwitchedOnCountsWhatRuns(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.dueOf(t, "k", "e", "d", "c", "b", "a")
		running := f.runWithout(t, 3)
		require.Equal(t, []string{"e", "d", "c"}, storetest.IDs(running))
		require.Empty(t, f.perKey(t, 2, 10).Leases)
		require.Empty(t, f.perKey(t, 2, 10, ack(running[0])).Leases, "two run")
		require.Equal(t, []string{"b"}, storetest.IDs(f.perKey(t, 2, 10, ack(running[1])).Leases))
	})
}

// TestTimersAboveLoweredLimitRunInTheirOrder checks timers that run when the limit is
// lowered, and whose leases then expire: as many run again as may, the first ones.
func TestTimersAboveLoweredLimitRunInTheirOrder(t *testing.T) {
	for limit := range 4 {
		t.Run("PerKey", func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, f *fixture) {
				ids := strings.Split("o n m l k j i h g f e d c b a", " ")
				f.dueOf(t, "k", ids...)
				require.Len(t, f.runWithout(t, 12), 12)
				<-time.After(2 * time.Minute)
				for len(ids) > 0 {
					leases := f.perKey(t, limit+1, 10).Leases
					got := storetest.IDs(leases)
					want := slices.Clone(ids[:min(limit+1, len(ids))])
					require.ElementsMatch(t, want, got)
					require.Empty(t, f.perKey(t, limit+1, 10).Leases)
					for _, l := range leases {
						f.perKey(t, limit+1, 0, ack(l))
					}
					ids = ids[len(want):]
				}
				f.noKeysLeft(t)
			})
		})
	}
}

// TestTimerThatNodeWithoutLimitsGivesBackIsInLine checks that the key of such a timer is
// known to have it, as a move requires, which takes all timers of a key.
func TestTimerThatNodeWithoutLimitsGivesBackIsInLine(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.dueOf(t, "k", "c", "b", "a")
		running := f.runWithout(t, 3)
		state := f.rdb.HGet(t.Context(), f.key.KeyStates, "k").Val()
		require.Equal(t, "m1 c1 b1 a", state, "they hold the key")
		f.perKey(t, 0, 0, storetest.Verdict(exchange.Release, running[1]), storetest.Verdict(exchange.Release, running[0]))
		require.EqualValues(t, 2, f.rdb.ZCard(t.Context(), f.key.KeyOrder).Val())
		require.Equal(t, "m1 a", f.rdb.HGet(t.Context(), f.key.KeyStates, "k").Val())
		require.Equal(t, []string{"c"}, storetest.IDs(f.perKey(t, 2, 10).Leases))
	})
}
