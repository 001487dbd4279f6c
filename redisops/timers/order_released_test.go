package timers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// of schedules a timer of the key "k" that is due since that second of 1970.
func (f *fixture) of(t *testing.T, id string, second int64) {
	t.Helper()
	f.schedule(t, Entry{ID: id, Key: "k", At: time.Unix(second, 0)})
}

// TestReleasedTimerIsInItsOrderAgain checks that an earlier timer comes before one that
// was released, also after a crash.
func TestReleasedTimerIsInItsOrderAgain(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *fixture) {
		for _, crashed := range []bool{false, true} {
			f.of(t, "second", 2)
			if crashed {
				f.perKey(t, 1, 1)
				<-time.After(2 * time.Minute) // its lease expires
			}
			running := f.perKey(t, 1, 1).Leases
			f.of(t, "first", 1)
			require.Empty(t, f.perKey(t, 1, 1).Leases, "it is parked")
			f.perKey(t, 1, 0, storetest.Verdict(exchange.Release, running[0]))
			for _, id := range []string{"first", "second"} {
				leases := f.perKey(t, 1, 1).Leases
				require.Equal(t, []string{id}, storetest.IDs(leases), "crashed: %v", crashed)
				f.perKey(t, 1, 0, ack(leases[0]))
			}
		}
		f.noKeysLeft(t)
	})
}

// TestFailedTimerThatIsReleasedKeepsItsKey checks that it still waits for its retry.
func TestFailedTimerThatIsReleasedKeepsItsKey(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *fixture) {
		f.of(t, "failed", 2)
		f.perKey(t, 1, 0, storetest.Verdict(exchange.Nack, f.perKey(t, 1, 1).Leases[0]))
		running := f.perKey(t, 1, 1).Leases
		f.of(t, "earlier", 1)
		f.perKey(t, 1, 0, storetest.Verdict(exchange.Release, running[0]))
		for _, id := range []string{"failed", "earlier"} {
			leases := f.perKey(t, 1, 1).Leases
			require.Equal(t, []string{id}, storetest.IDs(leases))
			f.perKey(t, 1, 0, ack(leases[0]))
		}
		f.noKeysLeft(t)
	})
}

// TestCancelWakesBehindTimerThatIsDue checks that all timers run that may, where the
// first one of the key is due already.
func TestCancelWakesBehindTimerThatIsDue(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *fixture) {
		for second, id := range []string{"a", "b", "c"} {
			f.of(t, id, int64(second))
		}
		require.Equal(t, []string{"a", "b"}, storetest.IDs(f.perKey(t, 2, 10).Leases), "c is parked")
		f.of(t, "b", 1) // it is due again, and no longer running
		_, err := f.Cancel(t.Context(), f.topic, "a")
		require.NoError(t, err)
		require.Equal(t, []string{"b", "c"}, storetest.IDs(f.perKey(t, 2, 10).Leases))
	})
}
