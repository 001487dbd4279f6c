package gates_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
)

// A waiting ticket is not a valid token, not even if its process has the turn and may
// pass it on.
func TestGuardRefusesWaitingTicket(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		g := stacktest.GatesOn(t, rdb, gate.Config{})
		turn := acquire(t, g, "gate")
		next := waits(t, g, "gate")
		info, err := g.Show(t.Context(), "gate")
		require.NoError(t, err)
		ticket := info.Waiters[0].Fence
		require.ErrorIs(t, g.Guard(t.Context(), "gate", "db", ticket), gate.ErrFenceUnknown)
		require.NoError(t, turn.Guard(t.Context(), "db"))
		release(t, turn)
		got := stacktest.Receive(t, next)
		require.Equal(t, ticket, got.Fence())
		require.NoError(t, got.Guard(t.Context(), "db"))
		release(t, got)
	})
}

// If the tokens of a gate are far ahead of the clock, other gates of the process are
// not affected, and the gate's tokens continue to increase.
func TestRaisedTokensOfGateDoNotRaiseOthers(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		g := stacktest.GatesOn(t, rdb, gate.Config{})
		const floor = 8_000_000_000_000_000
		_, err := g.Repair(t.Context(), "lifted", floor)
		require.NoError(t, err)
		turn := acquire(t, g, "lifted")
		require.Greater(t, turn.Fence(), uint64(floor))
		other := acquire(t, g, "other")
		require.Less(t, other.Fence(), uint64(floor))
		release(t, other)
		release(t, turn)
	})
}

// A turn at a gate with a key of a wrong type ends. The turns at other gates of the
// process continue.
func TestBrokenGateEndsOnlyItsTurn(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		g := stacktest.GatesOn(t, rdb, gate.Config{})
		broken, fine := acquire(t, g, "broken"), acquire(t, g, "fine")
		require.NoError(t, rdb.Set(t.Context(), "{gates}:state:broken", "wrong type", 0).Err())
		<-broken.Context().Done()
		<-time.After(time.Minute)
		require.NoError(t, fine.Context().Err())
		_, err := g.Acquire(t.Context(), "broken")
		require.ErrorIs(t, err, wakebell.ErrWrongType)
		release(t, fine)
	})
}
