package timers

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// A timer that waits for its retry without its key is not known to the key. If a sweep has
// forgotten the key meanwhile, a new timer of it counts as its only one.
func TestTimerThatReturnsSharesKeyWithNewOne(t *testing.T) {
	t.Parallel()
	for name, claimed := range map[string]bool{"which is due at the same time": false, "which runs": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, f *fixture) {
				f = f.holder(SourceOptions{SkipFailed: true})
				f.dueOf(t, "k", "a")
				nack := storetest.Verdict(exchange.Nack, f.perKey(t, 1, 10).Leases[0])
				nack.Delay = 10 * time.Millisecond
				require.Empty(t, f.perKey(t, 1, 0, nack).Leases)
				require.NoError(t, f.src.SweepKeys(t.Context(), exchange.Flow{PerKey: 1}))
				f.dueOf(t, "k", "b")
				var first []exchange.Lease
				if claimed {
					first = f.perKey(t, 1, 1).Leases
					require.Equal(t, []string{"b"}, storetest.IDs(first), "it is due for longer")
				}
				require.Eventually(t, func() bool { return !f.get(t, "a").Due.After(f.now(t)) }, 10*time.Second, time.Millisecond)
				first = append(first, f.perKey(t, 1, 10).Leases...)
				require.Len(t, first, 1, "at once")
				second := f.perKey(t, 1, 10, ack(first[0])).Leases
				require.Len(t, second, 1)
				require.Empty(t, f.perKey(t, 1, 10, ack(second[0])).Leases)
				f.noKeysLeft(t)
			})
		})
	}
}

// What is left in the order of a key of a timer that a peer has handled does not bring a timer
// forward that is imported with its id.
func TestImportedTimerDoesNotTakePlaceOfHandledOne(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.dueOf(t, "k", "a", "b", "c")
		require.Equal(t, []string{"a"}, storetest.IDs(f.perKey(t, 1, 10).Leases))
		f.peerCommit(t, "a")
		f.peerCommit(t, "b")
		now := time.Now()
		for number, id := range []string{"a", "b"} {
			_, err := f.Put(t.Context(), f.topic, PutKeep, []Stored{{ID: id, Key: "k", At: now, Due: now, Payload: []byte("again"), Number: int64(10 + number)}})
			require.NoError(t, err)
		}
		require.Equal(t, []string{"c", "a", "b"}, f.drained(t, 1))
		f.noKeysLeft(t)
	})
}

// A sweep finds a timer that waits for a token of its key also if it does so from its instant
// on, to the µs.
func TestSweepFindsTimerThatWaitsFromItsInstantOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		f := newFixture(t, rdb)
		slow := exchange.Flow{KeyRateLimit: 1, KeyRatePer: time.Minute, KeyRateBurst: 1}
		for _, id := range []string{"a", "b"} {
			f.schedule(t, Entry{ID: id, Key: "k", Payload: []byte("x"), At: time.Now()})
			f.keyRated(t, 10, slow, acks(f.keyRated(t, 10, slow).Leases)...)
		}
		require.WithinDuration(t, time.Now().Add(time.Minute), f.get(t, "b").Due, time.Second)
		faster := exchange.Flow{KeyRateLimit: 60, KeyRatePer: time.Minute, KeyRateBurst: 1}
		require.NoError(t, f.src.SweepKeys(t.Context(), faster))
		require.False(t, f.get(t, "b").Due.After(time.Now()))
	})
}
