package gates

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/gate"
	"github.com/wakebell/wakebell/wakebelltype"
)

func (f *fixture) guards(t testing.TB, resource string, fence gate.Ticket) error {
	t.Helper()
	return f.Guard(t.Context(), f.gate, resource, uint64(fence), false)
}

// TestMadeUpFenceIsRefused checks that a token without a turn does not change the
// guard; otherwise one call could lock out the holder.
func TestMadeUpFenceIsRefused(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		const most = 1<<53 - 1
		require.ErrorIs(t, f.guards(t, "db", most), ErrFenceUnknown, "the gate was never used")
		a, b := f, f.other()
		first, _ := a.join(t)
		second, _ := b.join(t)
		for _, made := range []gate.Ticket{most, first + 1, second, second + 1} {
			require.ErrorIs(t, f.guards(t, "db", made), ErrFenceUnknown)
		}
		require.NoError(t, f.guards(t, "db", first))
		require.True(t, a.give(t, first))
		require.NoError(t, f.guards(t, "db", second))
		require.ErrorIs(t, f.guards(t, "db", first), ErrFenceStale)
		b.give(t, second)
		f.expire(t)
		require.ErrorIs(t, f.guards(t, "db", most), ErrFenceUnknown)
	})
}

// TestTurnsPassedOnLocallyPassGuard checks that the guard accepts the token of a
// turn that a process passes on to itself, before and after the store is notified.
func TestTurnsPassedOnLocallyPassGuard(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		first, _ := f.join(t)
		second, _ := f.join(t)
		third, _ := f.join(t)
		require.NoError(t, f.guards(t, "db", second))
		f.do(t, gate.Op{Kind: gate.Give, Ticket: first}, gate.Op{Kind: gate.GivePassed, Ticket: second}, gate.Op{Kind: gate.Give, Ticket: third})
		require.NoError(t, f.guards(t, "db", second), "this token had the turn")
		require.ErrorIs(t, f.guards(t, "db", third), ErrFenceUnknown, "the turn was withdrawn")
	})
}

// On another Redis the guard knows only the clock, not the turns.
func TestGuardElsewhereGoesByClock(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		at := func(d time.Duration) uint64 { return uint64(time.Now().Add(d).UnixMicro()) } //nolint:gosec // positive
		require.NoError(t, f.Guard(t.Context(), f.gate, "db", at(-time.Hour), true))
		require.NoError(t, f.Guard(t.Context(), f.gate, "db", at(time.Hour), true))
		require.ErrorIs(t, f.Guard(t.Context(), f.gate, "db", at(48*time.Hour), true), ErrFenceUnknown)
		require.ErrorIs(t, f.Guard(t.Context(), f.gate, "db", at(0), true), ErrFenceStale)
		require.ErrorIs(t, f.Guard(t.Context(), f.gate, "new", at(-8*24*time.Hour), true), ErrFenceStale)
	})
}

// A stale token is refused even if the guard has forgotten the newer one.
func TestGuardThatHasForgotten(t *testing.T) {
	t.Parallel()
	rdb, m := redistest.Embedded(t)
	f := newFixture(t, rdb)
	f.terms.Lease = 24 * time.Hour
	now := time.Now()
	m.SetTime(now)
	stale := f.use(t)
	held, _ := f.join(t)
	require.NoError(t, f.guards(t, "db", held))
	for i := range 100 {
		require.NoError(t, f.guards(t, "page "+strconv.Itoa(i), held))
	}
	m.SetTime(now.Add(GuardLife + time.Minute))
	require.NoError(t, rdb.Del(t.Context(), f.keys(f.gate).guard(f.gate)).Err())
	require.ErrorIs(t, f.guards(t, "db", stale), ErrFenceStale)
	require.NoError(t, f.guards(t, "db", held), "it has the turn, however long ago it was issued")
}

// TestGuardForgetsResourcesOneByOne checks that an unused resource expires
// although others are used.
func TestGuardForgetsResourcesOneByOne(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t))
	first := f.use(t)
	old := strconv.FormatInt(time.Now().Add(-2*GuardLife).UnixMicro(), 10)
	for i := range 200 {
		require.NoError(t, f.rdb.HSet(t.Context(), f.keys(f.gate).guard(f.gate), "old "+strconv.Itoa(i), old).Err())
	}
	for i := range 400 {
		require.NoError(t, f.guards(t, "new "+strconv.Itoa(i), first))
	}
	require.Less(t, f.rdb.HLen(t.Context(), f.keys(f.gate).guard(f.gate)).Val(), int64(500))
}

// TestRepairClearsPoisonedGuard checks that repair clears tokens that were never
// issued, and does not raise the gate.
func TestRepairClearsPoisonedGuard(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		stale := f.use(t)
		held, _ := f.join(t)
		poison := func(resource, token string) {
			require.NoError(t, f.rdb.HSet(t.Context(), f.keys(f.gate).guard(f.gate), resource, token).Err())
		}
		poison("db", "9007199254740991")
		poison("other", "-1e300")
		poison("text", "no token")
		require.ErrorIs(t, f.guards(t, "db", held), ErrFenceRegressed)
		repaired, err := f.Repair(t.Context(), f.gate, 0, f.terms)
		require.NoError(t, err)
		require.Equal(t, wakebelltype.GateRepaired{Before: uint64(held), After: uint64(held), Cleared: 3}, repaired)
		require.Equal(t, []bool{false}, f.beat(t, held).Lost, "the turn continues")
		for _, resource := range []string{"db", "other", "text"} {
			require.ErrorIs(t, f.guards(t, resource, stale), ErrFenceStale)
			require.NoError(t, f.guards(t, resource, held))
		}
		f.give(t, held)
		require.Greater(t, f.use(t), held)
	})
}

// TestRepairLiftsAfterLossOfData checks that repair raises the gate after a loss
// of data, with more resources than one step reads.
func TestRepairLiftsAfterLossOfData(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		held, _ := f.join(t)
		waiting, _ := f.join(t)
		lost := uint64(waiting) + uint64(time.Hour.Microseconds())
		for i := range uint64(1500) {
			require.NoError(t, f.rdb.HSet(t.Context(), f.keys(f.gate).guard(f.gate), "r"+strconv.FormatUint(i, 10), lost+i).Err())
		}
		repaired, err := f.Repair(t.Context(), f.gate, 0, f.terms)
		require.NoError(t, err)
		require.Equal(t, wakebelltype.GateRepaired{Before: uint64(waiting), After: lost + 1499, Removed: 2}, repaired)
		require.Equal(t, []bool{true}, f.beat(t, held).Lost)
		require.NoError(t, f.guards(t, "r1499", f.use(t)))
	})
}

// TestGateWithoutTokensIsRemoved checks that removing a gate whose tokens are
// exhausted makes it usable again.
func TestGateWithoutTokensIsRemoved(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		held, _ := f.join(t)
		require.NoError(t, f.rdb.HSet(t.Context(), f.keys(f.gate).state(f.gate), "last", "9007199254740991").Err())
		_, err := f.Exchange(t.Context(), f.request(gate.Op{Kind: gate.Join}))
		require.ErrorIs(t, err, wakebelltype.ErrGateExhausted)
		require.True(t, f.give(t, held))
		removed, err := f.Remove(t.Context(), f.gate, false, f.terms)
		require.NoError(t, err)
		require.True(t, removed.Existed)
		next := f.use(t)
		require.Greater(t, next, held)
		require.LessOrEqual(t, int64(next), time.Now().Add(time.Hour).UnixMicro()) //nolint:gosec // below 2^53
	})
}
