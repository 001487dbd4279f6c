package gates

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/gate"
	"github.com/wakebell/wakebell/redisops"
)

func (f *fixture) guards(t testing.TB, resource string, fence gate.Ticket) error {
	t.Helper()
	return f.Guard(t.Context(), f.gate, resource, uint64(fence), false)
}

// No token that did not have a turn moves the guard: one call must not shut out
// the holder.
func TestAMadeUpFenceIsRefused(t *testing.T) {
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

// A turn that a process passes on to itself is no unknown one, before the store
// hears of it and after.
func TestThePassedOnPassTheGuard(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		first, _ := f.join(t)
		second, _ := f.join(t)
		third, _ := f.join(t)
		require.NoError(t, f.guards(t, "db", second))
		f.do(t, gate.Op{Kind: gate.Give, Ticket: first}, gate.Op{Kind: gate.GivePassed, Ticket: second}, gate.Op{Kind: gate.Give, Ticket: third})
		require.NoError(t, f.guards(t, "db", second), "it had the turn")
		require.ErrorIs(t, f.guards(t, "db", third), ErrFenceUnknown, "it was withdrawn")
	})
}

// Elsewhere nothing is known of turns but the clock.
func TestAGuardElsewhereGoesByTheClock(t *testing.T) {
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

// What the guard has forgotten lets no stale token through.
func TestAGuardThatHasForgotten(t *testing.T) {
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
	require.NoError(t, rdb.Del(t.Context(), f.keys.guard(f.gate)).Err())
	require.ErrorIs(t, f.guards(t, "db", stale), ErrFenceStale)
	require.NoError(t, f.guards(t, "db", held), "it has the turn, however long ago it was issued")
}

// A resource that is not used any more does not stay as long as others are.
func TestAGuardForgetsResourcesOneByOne(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t))
	first := f.use(t)
	old := strconv.FormatInt(time.Now().Add(-2*GuardLife).UnixMicro(), 10)
	for i := range 200 {
		require.NoError(t, f.rdb.HSet(t.Context(), f.keys.guard(f.gate), "old "+strconv.Itoa(i), old).Err())
	}
	for i := range 400 {
		require.NoError(t, f.guards(t, "new "+strconv.Itoa(i), first))
	}
	require.Less(t, f.rdb.HLen(t.Context(), f.keys.guard(f.gate)).Val(), int64(500))
}

// Repair clears what no turn can have written, and keeps the gate where it is.
func TestRepairClearsAPoisonedGuard(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		stale := f.use(t)
		held, _ := f.join(t)
		poison := func(resource, token string) {
			require.NoError(t, f.rdb.HSet(t.Context(), f.keys.guard(f.gate), resource, token).Err())
		}
		poison("db", "9007199254740991")
		poison("other", "-1e300")
		poison("text", "no token")
		require.ErrorIs(t, f.guards(t, "db", held), ErrFenceRegressed)
		repaired, err := f.Repair(t.Context(), f.gate, 0, f.terms)
		require.NoError(t, err)
		require.Equal(t, Repaired{Before: uint64(held), After: uint64(held), Cleared: 3}, repaired)
		require.Equal(t, []bool{false}, f.beat(t, held).Lost, "the turn goes on")
		for _, resource := range []string{"db", "other", "text"} {
			require.ErrorIs(t, f.guards(t, resource, stale), ErrFenceStale)
			require.NoError(t, f.guards(t, resource, held))
		}
		f.give(t, held)
		require.Greater(t, f.use(t), held)
	})
}

// A loss of data lifts the gate, also with more resources than one step takes.
func TestRepairLiftsAfterALossOfData(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		held, _ := f.join(t)
		waiting, _ := f.join(t)
		lost := uint64(waiting) + uint64(time.Hour.Microseconds())
		for i := range uint64(1500) {
			require.NoError(t, f.rdb.HSet(t.Context(), f.keys.guard(f.gate), "r"+strconv.FormatUint(i, 10), lost+i).Err())
		}
		repaired, err := f.Repair(t.Context(), f.gate, 0, f.terms)
		require.NoError(t, err)
		require.Equal(t, Repaired{Before: uint64(waiting), After: lost + 1499, Removed: 2}, repaired)
		require.Equal(t, []bool{true}, f.beat(t, held).Lost)
		require.NoError(t, f.guards(t, "r1499", f.use(t)))
	})
}

// What was lifted as far as numbers go can be left again.
func TestAGateWithoutTokensIsRemoved(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		held, _ := f.join(t)
		require.NoError(t, f.rdb.HSet(t.Context(), f.keys.state(f.gate), "last", "9007199254740991").Err())
		_, err := f.Exchange(t.Context(), f.request(gate.Op{Kind: gate.Join}))
		require.ErrorIs(t, err, redisops.ErrGateExhausted)
		require.True(t, f.give(t, held))
		removed, err := f.Remove(t.Context(), f.gate, false, f.terms)
		require.NoError(t, err)
		require.True(t, removed.Existed)
		next := f.use(t)
		require.Greater(t, next, held)
		require.LessOrEqual(t, int64(next), time.Now().Add(time.Hour).UnixMicro()) //nolint:gosec // below 2^53
	})
}
