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

// repaired repairs the topic, after it has checked that a dry run says the same and writes
// nothing.
func (f *fixture) repaired(t *testing.T, o wakebelltype.RepairOptions) wakebelltype.Repaired {
	t.Helper()
	before := f.dump(t)
	foretold, err := f.Repair(t.Context(), f.topic, o)
	require.NoError(t, err)
	require.Equal(t, before, f.dump(t), "a dry run writes nothing")
	o.Apply = true
	done, err := f.Repair(t.Context(), f.topic, o)
	require.NoError(t, err)
	foretold.Examined, done.Examined = 0, 0
	if foretold.Dropped > 0 && foretold.Missing > foretold.Dropped {
		// Redis shrinks the timeline while timers are dropped, and a scan may then return
		// those that stay a second time.
		require.GreaterOrEqual(t, done.Missing, foretold.Missing)
		done.Missing = foretold.Missing
	}
	require.Equal(t, foretold, done)
	again, err := f.Repair(t.Context(), f.topic, o)
	require.NoError(t, err)
	require.Zero(t, again.Restored+again.Dropped+again.Removed, "nothing is left to do")
	return done
}

// TestRepairRestoresDeletedTimeline checks that timers are due again when they were, with
// their attempts and keys, where that is known, and otherwise when the operator says.
func TestRepairRestoresDeletedTimeline(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		at := time.Now().Add(time.Hour).Truncate(time.Microsecond).UTC()
		f.due(t, "failed", "leased")
		leases := f.Claim(t, 2).Leases
		nack := storetest.Verdict(exchange.Nack, leases[0])
		nack.Delay, nack.Reason = time.Hour, "no answer"
		f.Settle(t, nack)
		f.schedule(t, Entry{ID: "keyed", Key: "k", Payload: []byte("x"), At: at}, Entry{ID: "plain", Payload: []byte("y"), At: at})
		f.dueOf(t, "busy", "b1", "b2")
		flow := exchange.Flow{PerKey: 1}
		r := f.Request(10, time.Minute)
		r.Flow = flow
		require.Equal(t, []string{"b1"}, storetest.IDs(f.Run(t, r).Leases), "b2 is parked")
		b2 := f.get(t, "b2").Activation
		failed, keyed := f.get(t, "failed"), f.get(t, "keyed")
		f.do(t, "DEL", f.key.Timeline)

		later := at.Add(time.Hour)
		done := f.repaired(t, wakebelltype.RepairOptions{At: later})
		require.Equal(t, wakebelltype.Repaired{Restored: 6, Known: 5}, done)
		require.Equal(t, failed, f.get(t, "failed"))
		require.Equal(t, keyed, f.get(t, "keyed"))
		require.Equal(t, later, f.get(t, "plain").Due)
		require.True(t, f.get(t, "leased").Running)
		require.Equal(t, b2, f.get(t, "b2").Due)
		require.Equal(t, "busy", f.get(t, "b2").Key)
		require.Empty(t, f.Settle(t, ack(leases[1])).Refused, "its handler still has the lease")

		require.NoError(t, f.src.SweepKeys(t.Context(), flow))
		r = f.Request(10, time.Minute)
		r.Flow = flow
		require.Equal(t, []string{"b2"}, storetest.IDs(f.Run(t, r).Leases))
	})
}

// TestRepairOfManyTimers checks that a repair reads page after page.
func TestRepairOfManyTimers(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.lostTimeline(t, 700)
		f.do(t, "HSET", f.key.Payloads, "unknown", "x")
		f.do(t, "HSET", f.key.Leases, "gone", "w:1:1:1700000000:1800000000:1700000000:error")
		done := f.repaired(t, wakebelltype.RepairOptions{})
		require.Equal(t, wakebelltype.Repaired{Restored: 701, Known: 350 + 117, Removed: 1}, done)
		require.EqualValues(t, 701, f.rdb.ZCard(t.Context(), f.key.Timeline).Val())
		swept, err := f.src.RemoveOrphans(t.Context())
		require.NoError(t, err)
		require.Zero(t, swept)
	})
}

// TestRepairDropsTimersWithoutPayload checks that they become dead letters when the operator
// says so, except those that a handler has.
func TestRepairDropsTimersWithoutPayload(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "leased")
		l := f.Claim(t, 1).Leases[0]
		var entries []Entry
		for i := range 300 {
			entries = append(entries, Entry{ID: fmt.Sprint("lost", i), Key: fmt.Sprint("k", i%7), Payload: []byte("x"), In: time.Hour})
		}
		f.schedule(t, entries...)
		f.do(t, "DEL", f.key.Payloads)
		require.Equal(t, wakebelltype.Repaired{Missing: 301}, f.repaired(t, wakebelltype.RepairOptions{}))
		require.EqualValues(t, 301, f.rdb.ZCard(t.Context(), f.key.Timeline).Val())
		require.Equal(t, wakebelltype.Repaired{Missing: 301, Dropped: 300}, f.repaired(t, wakebelltype.RepairOptions{DropMissing: true}))
		require.Empty(t, f.Settle(t, ack(l)).Refused)
		require.Zero(t, f.rdb.ZCard(t.Context(), f.key.Timeline).Val())
		f.noKeysLeft(t)
		letters, _, err := f.DeadLetters(t.Context(), f.topic, wakebelltype.DeadFilter{Reason: exchange.PayloadMissing}, "", 1000)
		require.NoError(t, err)
		require.Len(t, letters, 300)
		require.WithinDuration(t, time.Now().Add(time.Hour), letters[0].Activation, time.Minute)
		require.NotEmpty(t, letters[0].Key)
	})
}
