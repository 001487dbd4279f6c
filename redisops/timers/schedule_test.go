package timers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestScheduleAndGet(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		at := time.Date(2040, 1, 2, 3, 4, 5, 678901234, time.UTC)
		out := f.schedule(t, Entry{ID: "a", Payload: []byte{0, 255, '\n'}, At: at}, Entry{ID: "b", In: time.Hour})
		require.Equal(t, wakebelltype.OutcomeCreated, out[0].Outcome)
		require.Equal(t, at.Truncate(time.Microsecond).Add(time.Microsecond), out[0].Due, "rounded up")
		require.WithinDuration(t, time.Now().Add(time.Hour), out[1].Due, time.Minute)
		got := f.get(t, "a")
		require.Equal(t, []byte{0, 255, '\n'}, got.Payload)
		require.Equal(t, out[0].Due, got.Due)
		require.Equal(t, got.Due, got.Activation)
		require.False(t, got.Running)
		_, err := f.Get(t.Context(), f.topic, "c")
		require.ErrorIs(t, err, wakebelltype.ErrNotFound)
	})
}

func TestPastIsDueAtOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.schedule(t, Entry{ID: "long ago", At: time.Unix(-5, 0)}, Entry{ID: "negative", In: -time.Hour})
		reply := f.Claim(t, 10)
		require.Equal(t, []string{"long ago", "negative"}, storetest.IDs(reply.Leases))
		require.Equal(t, time.Unix(-5, 0).UTC(), reply.Leases[0].Activation)
	})
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "running", "running2")
		leases := f.Claim(t, 2).Leases
		f.schedule(t, Entry{ID: "pending", Payload: []byte("1"), In: time.Hour}, Entry{ID: "pending2", In: time.Hour})

		out := f.schedule(t,
			Entry{ID: "pending", Payload: []byte("2"), In: time.Minute, Policy: wakebelltype.PolicyKeep},
			Entry{ID: "running", Payload: []byte("2"), Policy: wakebelltype.PolicyKeep},
			Entry{ID: "new", Policy: wakebelltype.PolicyKeep, In: time.Hour},
			Entry{ID: "pending2", Payload: []byte("2"), In: time.Minute},
			Entry{ID: "running2", Payload: []byte("2"), In: time.Minute})
		var outcomes []wakebelltype.Outcome
		for _, o := range out {
			outcomes = append(outcomes, o.Outcome)
		}
		require.Equal(t, []wakebelltype.Outcome{wakebelltype.OutcomeKeptPending, wakebelltype.OutcomeKeptRunning, wakebelltype.OutcomeCreated, wakebelltype.OutcomeReplaced, wakebelltype.OutcomeSuperseded}, outcomes)
		require.Equal(t, "1", string(f.get(t, "pending").Payload))
		require.Equal(t, leases[0].Activation, out[1].Due, "of a running one its activation")
		require.True(t, f.get(t, "running").Running)
		superseded := f.get(t, "running2")
		require.False(t, superseded.Running)
		require.Zero(t, superseded.Claims)
		require.Equal(t, "2", string(superseded.Payload))

		reply := f.Settle(t, storetest.Verdict(exchange.Ack, leases[0]), storetest.Verdict(exchange.Ack, leases[1]))
		require.Equal(t, []exchange.Refusal{{Index: 1, Reason: exchange.Superseded}}, reply.Refused)
		require.Equal(t, "2", string(f.get(t, "running2").Payload), "the new timer stays")
	})
}

// TestRescheduleOntoTokenMoves checks that a new instant that equals the end of
// the lease does not make the old token valid.
func TestRescheduleOntoTokenMoves(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a")
		reply := f.Claim(t, 1)
		// A score that a time.Time can name exactly.
		end := time.Now().Add(time.Hour).Truncate(time.Second)
		require.NoError(t, f.rdb.ZAdd(t.Context(), f.key.Timeline, z(float64(end.Unix()), "a")).Err())
		record := fmt.Sprintf("l:1:0:1.5:%d", end.Unix())
		require.NoError(t, f.rdb.HSet(t.Context(), f.key.Leases, "a", record).Err())
		out := f.schedule(t, Entry{ID: "a", At: end})
		require.Equal(t, wakebelltype.OutcomeSuperseded, out[0].Outcome)
		require.Equal(t, end.Add(time.Microsecond).UTC(), out[0].Due)
		stale := reply.Leases[0]
		stale.Token = exchange.Token(fmt.Sprint(end.Unix()))
		require.Equal(t, exchange.Superseded, f.Settle(t, storetest.Verdict(exchange.Ack, stale)).Refused[0].Reason)
		f.get(t, "a")
	})
}

func TestScheduleChecksAllBeforeFirst(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		good := Entry{ID: "good"}
		for name, bad := range map[string]Entry{
			"empty":    {},
			"too long": {ID: strings.Repeat("x", 513)},
			"no UTF-8": {ID: "\xff"},
			"twice":    {ID: "good"},
			"policy":   {ID: "x", Policy: 9},
			"year":     {ID: "x", At: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
		} {
			_, err := f.Schedule(t.Context(), f.topic, good, bad)
			require.ErrorIs(t, err, wakebelltype.ErrInvalid, name)
		}
		for _, topic := range []string{"", strings.Repeat("x", 513)} {
			_, err := f.Schedule(t.Context(), topic, good)
			require.ErrorIs(t, err, wakebelltype.ErrInvalid)
		}
		require.Zero(t, f.rdb.Exists(t.Context(), f.key.Timeline, f.key.Payloads).Val())
		out, err := f.Schedule(t.Context(), f.topic)
		require.NoError(t, err)
		require.Empty(t, out)
	})
}

func TestScheduleManyAndCount(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		entries := make([]Entry, 1201)
		for i := range entries {
			entries[i] = Entry{ID: fmt.Sprint(i), Payload: make([]byte, 1500), In: time.Hour}
		}
		entries[7].In = 0
		out := f.schedule(t, entries...)
		require.Len(t, out, len(entries))
		require.Equal(t, "1200", out[1200].ID)
		stats, err := f.Stats(t.Context(), f.topic)
		require.NoError(t, err)
		require.EqualValues(t, 1201, stats.Total)
		require.EqualValues(t, 1, stats.Due)
	})
}

func TestBatchesAreBounded(t *testing.T) {
	t.Parallel()
	big := Entry{Payload: make([]byte, layout.BatchBytes)}
	fits := func(entries []Entry) int {
		n, of := carried(entries)
		require.EqualValues(t, n, of.entries)
		return n
	}
	require.Equal(t, 500, fits(make([]Entry, 700)))
	require.Equal(t, 500, fits(make([]Entry, 500)))
	require.Equal(t, 1, fits([]Entry{big, big}))
	require.Equal(t, 2, fits([]Entry{{}, big, {Payload: []byte("x")}}))
}

func TestCancel(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "running", "expired")
		leases := f.Claim(t, 1).Leases
		f.schedule(t, Entry{ID: "pending", In: time.Hour})
		require.NoError(t, f.rdb.ZAdd(t.Context(), f.key.Timeline, z(5, "no payload")).Err())
		found, err := f.Cancel(t.Context(), f.topic, "running", "absent", "pending", "no payload", "pending", "expired")
		require.NoError(t, err)
		require.Equal(t, []wakebelltype.Presence{wakebelltype.PresenceRunning, wakebelltype.PresenceAbsent, wakebelltype.PresencePending, wakebelltype.PresenceAbsent, wakebelltype.PresenceAbsent, wakebelltype.PresencePending}, found)
		require.Equal(t, exchange.Cancelled, f.Extend(t, time.Minute, leases...).Refused[0].Reason)
		require.Zero(t, f.rdb.Exists(t.Context(), f.key.Timeline, f.key.Payloads).Val())
	})
}

func TestCancelAll(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a", "b", "c")
		leases := f.Claim(t, 2).Leases
		n, err := f.CancelAll(t.Context(), f.topic)
		require.NoError(t, err)
		require.EqualValues(t, 3, n)
		refused := f.Settle(t, storetest.Verdict(exchange.Ack, leases[0]), storetest.Verdict(exchange.Nack, leases[1])).Refused
		require.Equal(t, []exchange.Refusal{{Index: 0, Reason: exchange.Cancelled}, {Index: 1, Reason: exchange.Cancelled}}, refused)
		n, err = f.CancelAll(t.Context(), f.topic)
		require.NoError(t, err)
		require.Zero(t, n)
	})
}
