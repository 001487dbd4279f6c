package wakebell_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/redistest"
)

// A ticket that waits is no token yet: not even one of the process that has the
// turn, which may pass it on.
func TestATicketThatWaitsDoesNotPassTheGuard(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		g := gatesOn(t, rdb, gate.Config{})
		turn := acquire(t, g, "gate")
		next := waits(t, g, "gate")
		info, err := g.Show(t.Context(), "gate")
		require.NoError(t, err)
		ticket := info.Waiters[0].Fence
		require.ErrorIs(t, g.Guard(t.Context(), "gate", "db", ticket), gate.ErrFenceUnknown)
		require.NoError(t, turn.Guard(t.Context(), "db"))
		release(t, turn)
		got := receive(t, next)
		require.Equal(t, ticket, got.Fence())
		require.NoError(t, got.Guard(t.Context(), "db"))
		release(t, got)
	})
}

// A gate whose tokens were lifted far ahead of the clock lifts no other gate of
// the process, and its own go on growing.
func TestALiftedGateDoesNotLiftOthers(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		g := gatesOn(t, rdb, gate.Config{})
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

// A turn at a gate with a key of another type ends by itself; the turns at the
// other gates of the process do not.
func TestABrokenGateEndsItsTurnAlone(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		g := gatesOn(t, rdb, gate.Config{})
		broken, fine := acquire(t, g, "broken"), acquire(t, g, "fine")
		require.NoError(t, rdb.Set(t.Context(), "{gates}:state:broken", "in the way", 0).Err())
		<-broken.Context().Done()
		<-time.After(time.Minute)
		require.NoError(t, fine.Context().Err())
		_, err := g.Acquire(t.Context(), "broken")
		require.ErrorIs(t, err, wakebell.ErrWrongType)
		release(t, fine)
	})
}
