package timers

import (
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
)

// attempts are what a timer has counted.
type attempts struct{ claims, failures int }

// TestKeysLeaveAttemptsAsTheyAre fails timers and gives them back, at random, so that a timer
// with attempts is passed over, parked and started in one exchange: no count may be lost.
func TestKeysLeaveAttemptsAsTheyAre(t *testing.T) {
	t.Parallel()
	flows := maps.Clone(fairFlows)
	for name, flow := range fairFlows {
		flow.FairKeys = 0
		flows[name+" without turns"] = flow
	}
	for name, flow := range flows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, f *fixture) {
				random := rand.New(rand.NewPCG(1, 2))
				for _, key := range []string{"a", "b", "c"} {
					f.backlog(t, key, 40)
				}
				counted := map[string]attempts{}
				var held []exchange.Lease
				for range 300 {
					var settle []exchange.Settlement
					random.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
					for range random.IntN(len(held) + 1) {
						l := held[0]
						held = held[1:]
						s, n := ack(l), counted[l.ID]
						switch random.IntN(8) {
						case 0:
							s.Verdict, n = exchange.Ack, attempts{}
						case 1, 2, 3:
							s.Verdict = exchange.Release
							n.claims--
						default:
							s.Verdict = exchange.Nack
							n.failures++
						}
						counted[l.ID], settle = n, append(settle, s)
					}
					for _, l := range f.fairly(t, flow, random.IntN(30), settle...) {
						n := counted[l.ID]
						require.Equal(t, attempts{n.claims + 1, n.failures}, attempts{l.Claims, l.Failures}, l.ID)
						counted[l.ID], held = attempts{l.Claims, l.Failures}, append(held, l)
					}
				}
			})
		})
	}
}

// TestSnoozedTimerHoldsItsKey checks that a timer that was snoozed waits like one that waits for
// its retry, although it has no failure: it holds its key, and its instant is that of the snooze.
func TestSnoozedTimerHoldsItsKey(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		flow := exchange.Flow{PerKey: 1}
		f.backlog(t, "k", 2)
		leases := f.fairly(t, flow, 10)
		require.Len(t, leases, 1)
		snooze := ack(leases[0])
		snooze.Verdict, snooze.Delay = exchange.Nack, time.Hour
		snooze.Reason, snooze.Snoozed = "not yet", true
		require.Empty(t, f.fairly(t, flow, 0, snooze))
		for range 3 {
			require.NoError(t, f.src.SweepKeys(t.Context(), flow))
			require.Empty(t, f.fairly(t, flow, 10), "the next timer of the key waits")
		}
		timer, err := f.Get(t.Context(), f.topic, leases[0].ID)
		require.NoError(t, err)
		require.Greater(t, time.Until(timer.Due), time.Minute)
		require.Zero(t, timer.Failures)
	})
}
