package timers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// A claim reads due timers in pages. The first timer of a key may be due after others of a page, which
// are parked because it starts: the next page begins with the one after them.
func TestClaimSkipsNoTimerAfterOneThatIsDueLater(t *testing.T) {
	for name, flow := range map[string]exchange.Flow{
		"one at once": {PerKey: 1}, "with tokens": {PerKey: 1, KeyRateLimit: 100, KeyRatePer: time.Second, KeyRateBurst: 100},
		"turns": {PerKey: 1, FairKeys: 1},
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, f *fixture) {
				f.dueLater(t, flow, "first")
				f.dueOf(t, "k", "second", "third")
				f.schedule(t, Entry{ID: "other", Key: "o", At: time.Now().Add(-time.Minute)})
				require.ElementsMatch(t, []string{"first", "other"}, storetest.IDs(f.keyRated(t, 2, flow).Leases))
			})
		})
	}
}

// dueLater has a timer of the key "k" due since its lease has expired, later than its instant.
func (f *fixture) dueLater(t *testing.T, flow exchange.Flow, id string) {
	t.Helper()
	f.dueOf(t, "k", id)
	require.Len(t, f.claimFor(t, time.Second, 1, flow).Leases, 1)
	<-time.After(2 * time.Second)
	again := f.keyRated(t, 1, flow).Leases
	require.Len(t, again, 1)
	require.Empty(t, f.keyRated(t, 0, flow, storetest.Verdict(exchange.Release, again[0])).Refused)
}

// A page that has a timer again that the claim has chosen does not stop others of its key.
func TestClaimPassesOverTimerThatItHasChosen(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *fixture) {
		flow := exchange.Flow{KeyRateLimit: 1, KeyRatePer: time.Hour, KeyRateBurst: 4}
		f.dueOf(t, "used", numbered(4)...)
		require.Len(t, f.keyRated(t, 4, flow).Leases, 4)
		f.dueLater(t, flow, "first")
		f.dueOf(t, "k", "second")
		f.dueOf(t, "used", "u", "v")
		f.schedule(t, Entry{ID: "third", Key: "k", At: time.Now().Add(-time.Minute)})
		require.ElementsMatch(t, []string{"first", "second", "third"}, storetest.IDs(f.keyRated(t, 3, flow).Leases))
	})
}
