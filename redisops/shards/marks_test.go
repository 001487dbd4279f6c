package shards

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestOnceHoldsWhileTimersMove schedules ids again that were handled before, during and
// after the move, also when a sweep has removed what was stored of keys before.
func TestOnceHoldsWhileTimersMove(t *testing.T) {
	t.Parallel()
	t.Run("not swept", func(t *testing.T) { onceHoldsWhileTimersMove(t, false) })
	t.Run("swept", func(t *testing.T) { onceHoldsWhileTimersMove(t, true) })
}

func onceHoldsWhileTimersMove(t *testing.T, swept bool) {
	t.Helper()
	t.Parallel()
	f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
	ids := []string{"during", "after:*%", "keyed"}
	once := func(id string) wakebelltype.Outcome {
		e := timers.Entry{ID: id, Payload: []byte("x"), Once: time.Hour}
		if id == "keyed" {
			e.Key = "customer"
		}
		done, err := f.Schedule(t.Context(), f.topic, e)
		require.NoError(t, err)
		return done[0].Outcome
	}
	for _, id := range ids {
		require.Equal(t, wakebelltype.OutcomeCreated, once(id))
	}
	streams, leases := f.claim(t)
	for _, l := range leases[0] {
		streams[0].Settle(t, storetest.Verdict(exchange.Ack, l))
	}
	if swept {
		require.NoError(t, f.timers.Source(f.topic, timers.SourceOptions{}).SweepKeys(t.Context(), exchange.Flow{}))
	}
	l := f.startMoving(t, 4)
	require.Equal(t, wakebelltype.OutcomeAlreadyDone, once("during"))
	f.moveAll(t, l)
	l, err := f.Settle(t.Context(), f.topic)
	require.NoError(t, err)
	require.False(t, l.Moving)
	for _, id := range ids {
		require.Equal(t, wakebelltype.OutcomeAlreadyDone, once(id), id)
	}
	require.Equal(t, wakebelltype.OutcomeCreated, once("other"))
}
