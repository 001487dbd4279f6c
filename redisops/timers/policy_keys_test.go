package timers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// overdue puts a timer "b" that is due in each state in which its score is not its instant.
// Before it, a timer of its key runs.
var overdue = map[string]struct {
	limit exchange.Flow
	then  func(t *testing.T, f *fixture, limit exchange.Flow, first exchange.Lease)
}{
	"waits for its token": {exchange.Flow{KeyRateLimit: 1, KeyRatePer: time.Hour}, nil},
	"waits for its token, and is the holder": {
		exchange.Flow{KeyRateLimit: 1, KeyRatePer: time.Hour, PerKey: 1},
		func(t *testing.T, f *fixture, limit exchange.Flow, first exchange.Lease) {
			f.keyRated(t, 10, limit, ack(first))
		},
	},
	"parked": {exchange.Flow{PerKey: 1}, nil},
	"woken": {exchange.Flow{PerKey: 1}, func(t *testing.T, f *fixture, limit exchange.Flow, first exchange.Lease) {
		f.keyRated(t, 0, limit, ack(first))
	}},
}

// inEachOverdueState runs a test for each of them. The timer is due since a time that
// scores have with other digits than places.
func inEachOverdueState(t *testing.T, test func(t *testing.T, f *fixture, due time.Time)) {
	for name, state := range overdue {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, f *fixture) {
				<-time.After(123457 * time.Microsecond)
				f.schedule(t, Entry{ID: "a", Key: "k", At: time.Now().Add(-time.Hour)})
				due := f.schedule(t, Entry{ID: "b", Key: "k", In: time.Microsecond, Once: 24 * time.Hour})[0].Due
				<-time.After(10*time.Minute + 654321*time.Microsecond)
				first := f.keyRated(t, 10, state.limit)
				require.Len(t, first.Leases, 1)
				if state.then != nil {
					state.then(t, f, state.limit, first.Leases[0])
				}
				test(t, f, due)
			})
		})
	}
}

// TestEarliestDoesNotMakeOverdueTimerLater checks that a due timer, which waits for its key
// or for a token, is compared by its instant.
func TestEarliestDoesNotMakeOverdueTimerLater(t *testing.T) {
	inEachOverdueState(t, func(t *testing.T, f *fixture, due time.Time) {
		for _, in := range []time.Duration{0, time.Minute, 2 * time.Hour, -time.Minute} {
			out := f.schedule(t, Entry{ID: "b", Key: "k", At: time.Now().Add(in), Policy: wakebelltype.PolicyEarliest})[0]
			require.Equal(t, wakebelltype.OutcomeKeptEarlier, out.Outcome, "%v from now", in)
			require.WithinDuration(t, due, out.Due, time.Microsecond)
		}
		at := due.Add(-time.Second)
		out := f.schedule(t, Entry{ID: "b", Key: "k", At: at, Policy: wakebelltype.PolicyEarliest, Payload: []byte("new")})[0]
		require.Equal(t, wakebelltype.OutcomeReplaced, out.Outcome)
		require.WithinDuration(t, at, f.get(t, "b").Activation, time.Microsecond)
	})
}

// TestEarliestComparesInstantOfTimerWhoseLeaseHasExpired checks that the end of a lease is
// not taken for the instant of its timer, with and without a key.
func TestEarliestComparesInstantOfTimerWhoseLeaseHasExpired(t *testing.T) {
	for _, key := range []string{"", "k"} {
		t.Run("key "+key, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, f *fixture) {
				due := f.schedule(t, Entry{ID: "b", Key: key, In: time.Microsecond})[0].Due
				<-time.After(time.Second)
				require.Len(t, f.claimFor(t, time.Minute, 1, exchange.Flow{}).Leases, 1)
				<-time.After(2 * time.Minute) // its node has died
				earliest := func(at time.Time) wakebelltype.Outcome {
					return f.schedule(t, Entry{ID: "b", Key: key, At: at, Policy: wakebelltype.PolicyEarliest})[0].Outcome
				}
				require.Equal(t, wakebelltype.OutcomeKeptEarlier, earliest(due.Add(time.Second)))
				require.Equal(t, wakebelltype.OutcomeReplaced, earliest(due.Add(-time.Second)))
			})
		})
	}
}

// TestEarliestComparesInstantOfTimerThatWasWokenAfterItsLease checks the same of one that
// was parked when its lease had expired, and then woken.
func TestEarliestComparesInstantOfTimerThatWasWokenAfterItsLease(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *fixture) {
		limit := exchange.Flow{PerKey: 1}
		f.schedule(t, Entry{ID: "b", Key: "k", In: time.Microsecond})
		<-time.After(time.Second)
		require.Len(t, f.claimFor(t, time.Minute, 1, limit).Leases, 1)
		<-time.After(2 * time.Minute) // its node has died
		f.dueOf(t, "k", "a")
		leases := f.keyRated(t, 10, limit).Leases
		require.Len(t, leases, 1)
		if leases[0].ID == "a" { // b was parked; the end of a wakes it
			f.Settle(t, storetest.Verdict(exchange.Ack, leases[0]))
		}
		out := f.schedule(t, Entry{ID: "b", Key: "k", At: time.Now().Add(-time.Second), Policy: wakebelltype.PolicyEarliest})[0]
		require.NotEqual(t, wakebelltype.OutcomeReplaced, out.Outcome)
	})
}

// TestOnceKnowsThatOverdueTimerWasNotDelivered checks that a due timer, which waits for its
// key or for a token, does not count as delivered.
func TestOnceKnowsThatOverdueTimerWasNotDelivered(t *testing.T) {
	inEachOverdueState(t, func(t *testing.T, f *fixture, _ time.Time) {
		out := f.schedule(t, Entry{ID: "b", Key: "k", In: time.Hour, Once: 24 * time.Hour})[0]
		require.Equal(t, wakebelltype.OutcomeReplaced, out.Outcome)
	})
}

// TestRescheduleMovesMarkOfOverdueTimer checks the same of Reschedule.
func TestRescheduleMovesMarkOfOverdueTimer(t *testing.T) {
	inEachOverdueState(t, func(t *testing.T, f *fixture, _ time.Time) {
		moved, err := f.Reschedule(t.Context(), f.topic, "b", time.Now().Add(time.Hour), 0)
		require.NoError(t, err)
		out := f.schedule(t, Entry{ID: "b", Key: "k", In: time.Minute, Once: 24 * time.Hour})[0]
		require.Equal(t, wakebelltype.OutcomeReplaced, out.Outcome)
		require.WithinDuration(t, moved.Due, out.Found, time.Microsecond)
	})
}

// TestDeliveredTimerThatIsParkedCountsAsDelivered checks a timer of Once whose lease has
// expired, and that then waits for its key.
func TestDeliveredTimerThatIsParkedCountsAsDelivered(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f *fixture) {
		limit := exchange.Flow{PerKey: 1}
		f.schedule(t, Entry{ID: "b", Key: "k", Once: 24 * time.Hour})
		require.Len(t, f.claimFor(t, time.Minute, 1, limit).Leases, 1)
		<-time.After(2 * time.Minute) // its node has died
		f.dueOf(t, "k", "a")
		require.Len(t, f.keyRated(t, 10, limit).Leases, 1)
		_, err := f.Reschedule(t.Context(), f.topic, "b", time.Now().Add(time.Hour), 0)
		require.NoError(t, err)
		out := f.schedule(t, Entry{ID: "b", Key: "k", In: time.Minute, Once: 24 * time.Hour})[0]
		require.Equal(t, wakebelltype.OutcomeKeptPending, out.Outcome)
	})
}
