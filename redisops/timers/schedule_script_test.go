package timers

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestScheduleBatchFindsWhatWasThere checks that a batch with some existing ids
// reports each of them, even if the instant is the same as before.
func TestScheduleBatchFindsWhatWasThere(t *testing.T) {
	t.Parallel()
	at := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	for name, leased := range map[string]bool{"nothing is leased": false, "another is leased": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, f *fixture) {
				if leased { // then there are records
					f.schedule(t, Entry{ID: "other"})
					require.Len(t, f.Claim(t, 1).Leases, 1)
				}
				f.schedule(t, Entry{ID: "same", At: at}, Entry{ID: "later", At: at.Add(time.Minute)}, Entry{ID: "bare", At: at},
					Entry{ID: "bare later", At: at.Add(time.Minute)})
				require.NoError(t, f.rdb.HDel(t.Context(), f.key.Payloads, "bare", "bare later").Err())

				entries := []Entry{{ID: "new"}, {ID: "same"}, {ID: "later"}, {ID: "bare"}, {ID: "bare later"}, {ID: "new too"}}
				for i := range entries {
					entries[i].At, entries[i].Payload = at, []byte("second")
				}
				for i, got := range f.schedule(t, entries...) {
					want := wakebelltype.Scheduled{ID: entries[i].ID, Due: at.UTC(), Outcome: wakebelltype.OutcomeCreated}
					switch want.ID {
					case "same":
						want.Outcome, want.Found = wakebelltype.OutcomeReplaced, at.UTC()
					case "later":
						want.Outcome, want.Found = wakebelltype.OutcomeReplaced, at.Add(time.Minute).UTC()
					}
					require.Equal(t, want, got)
					timer := f.get(t, got.ID)
					require.Equal(t, "second", string(timer.Payload))
					require.True(t, timer.Due.Equal(at))
				}
				// All of them again: none is new.
				for _, got := range f.schedule(t, entries...) {
					require.Equal(t, wakebelltype.OutcomeReplaced, got.Outcome, got.ID)
				}
			})
		})
	}
}

// TestScheduleBatchOfInstants checks that a batch with different instants is
// answered one by one.
func TestScheduleBatchOfInstants(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		start := time.Now().Add(time.Hour).Truncate(time.Microsecond).UTC()
		entries := make([]Entry, 1300)
		for i := range entries {
			entries[i] = Entry{ID: fmt.Sprint(i), At: start.Add(time.Duration(i) * time.Microsecond)}
		}
		for i, got := range f.schedule(t, entries...) {
			require.Equal(t, wakebelltype.Scheduled{ID: entries[i].ID, Due: entries[i].At, Outcome: wakebelltype.OutcomeCreated}, got)
		}
	})
}

// TestScheduleBatchSupersedes checks that a batch supersedes a lease, and that the
// holder is notified.
func TestScheduleBatchSupersedes(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.schedule(t, Entry{ID: "a"})
		lease := f.Claim(t, 1).Leases[0]
		out := f.schedule(t, Entry{ID: "a", In: time.Hour}, Entry{ID: "b", In: time.Hour})
		require.Equal(t, wakebelltype.OutcomeSuperseded, out[0].Outcome)
		require.Equal(t, wakebelltype.OutcomeCreated, out[1].Outcome)
		reply := f.Settle(t, storetest.Verdict(exchange.Ack, lease))
		require.Equal(t, []exchange.Refusal{{Index: 0, Reason: exchange.Superseded}}, reply.Refused)
	})
}

// TestNewTimerHasNoRecordOfEarlierOne checks it while others run, whose records stay.
func TestNewTimerHasNoRecordOfEarlierOne(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "runs", "removed")
		require.Len(t, f.Claim(t, 2).Leases, 2)
		f.peerCommit(t, "removed") // by a peer, which keeps no records
		f.schedule(t, Entry{ID: "removed", In: time.Hour}, Entry{ID: "new", In: time.Hour})
		require.False(t, f.rdb.HExists(t.Context(), f.key.Leases, "removed").Val())
		require.True(t, f.rdb.HExists(t.Context(), f.key.Leases, "runs").Val())
	})
}
