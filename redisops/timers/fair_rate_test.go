package timers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// A timer whose lease has expired held its key for the scripts that schedule. A claim that finds it out
// after it has started another of the key, and parks the first, puts it into the order of its key: otherwise
// only a sweep would find it.
func TestCrashedTimerIsStartedBesideOthersOfItsTurn(t *testing.T) {
	for name, turn := range map[string]int{"the same turn": 3, "the next turn": 1} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, f *fixture) {
				flow := exchange.Flow{KeyRateLimit: 1, KeyRatePer: time.Hour, KeyRateBurst: 3, FairKeys: turn}
				f.dueOf(t, "k", "crashed")
				require.Len(t, f.claimFor(t, time.Second, 2, flow).Leases, 1)
				<-time.After(2 * time.Second)
				f.dueOf(t, "k", "next")
				var ids []string
				for range 2 {
					ids = append(ids, storetest.IDs(f.keyRated(t, 10, flow).Leases)...)
				}
				require.ElementsMatch(t, []string{"crashed", "next"}, ids)
			})
		})
	}
}

// What a peer has left of a timer in the order of its key does not have a turn start it twice.
func TestTurnStartsTimerOnceThatPeerHasRemovedBefore(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *fixture) {
		flow := exchange.Flow{PerKey: 2, FairKeys: 1}
		f.dueOf(t, "k", "a", "c")
		f.schedule(t, Entry{ID: "f", Key: "k", At: time.Now().Add(time.Hour)})
		f.peerCommit(t, "f")
		f.schedule(t, Entry{ID: "f", Key: "k", At: time.Now().Add(-time.Minute)})
		first := f.keyRated(t, 2, flow).Leases
		require.Len(t, first, 2)
		rest := f.keyRated(t, 10, flow, acks(first)...).Leases
		require.Len(t, append(first, rest...), 3, "each once")
	})
}
