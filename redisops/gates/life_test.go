package gates

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/gate"
	"github.com/wakebell/wakebell/wakebelltype"
)

// use takes and releases a turn, and returns its token.
func (f *fixture) use(t testing.TB) gate.Ticket {
	t.Helper()
	ticket, turn := f.join(t)
	require.True(t, turn)
	require.True(t, f.give(t, ticket))
	return ticket
}

// expire deletes the keys of an idle gate, as Redis does after their time to live.
func (f *fixture) expire(t testing.TB) {
	t.Helper()
	k := f.keys(f.gate)
	require.NoError(t, f.rdb.Del(t.Context(), k.state(f.gate), k.stream(f.gate), k.guard(f.gate)).Err())
}

// TestIdleGateExpires checks that every key of a gate has a time to live.
func TestIdleGateExpires(t *testing.T) {
	t.Parallel()
	rdb, _ := redistest.Embedded(t)
	server := redistest.Start(t).Client(t)
	for name, f := range map[string]*fixture{"redis": newFixture(t, server), "embedded": newFixture(t, rdb)} {
		first, _ := f.join(t)
		require.NoError(t, f.Guard(t.Context(), f.gate, "db", uint64(first), false))
		f.beat(t, first)
		lives := func() map[string]time.Duration {
			found := map[string]time.Duration{}
			for _, key := range f.rdb.Keys(t.Context(), "*").Val() {
				if _, of, ok := strings.Cut(key, ":"+f.gate); ok && of == "" {
					found[strings.TrimSuffix(key, ":"+f.gate)] = f.rdb.PTTL(t.Context(), key).Val()
				}
			}
			return found
		}
		for key, life := range lives() {
			require.Positive(t, life, "%s: %s in use", name, key)
			if key == f.keys(f.gate).State || key == f.keys(f.gate).Stream {
				require.Greater(t, life, 24*time.Hour, "%s: %s is kept while it is in use", name, key)
			}
		}
		f.give(t, first)
		idle := lives()
		require.Len(t, idle, 4, name)
		for key, life := range idle {
			require.Positive(t, life, "%s: %s idle", name, key)
			require.LessOrEqual(t, life, time.Hour, "%s: %s idle", name, key)
		}
		require.Zero(t, f.rdb.ZCard(t.Context(), f.keys(f.gate).Deadlines).Val())
		require.Positive(t, f.rdb.PTTL(t.Context(), f.keys(f.gate).Presence).Val())
	}
}

// TestTokensGrowWhenGateHasExpired checks that tokens keep growing when the gate
// has expired and the clock steps back.
func TestTokensGrowWhenGateHasExpired(t *testing.T) {
	t.Parallel()
	rdb, m := redistest.Embedded(t)
	f := newFixture(t, rdb)
	now := time.Now()
	m.SetTime(now)
	last := f.use(t)
	for _, step := range []time.Duration{0, time.Second, -time.Hour, -2 * time.Hour, time.Hour} {
		f.expire(t)
		m.SetTime(now.Add(step))
		ticket := f.other().use(t)
		require.Greater(t, ticket, last, step)
		last = ticket
	}
}

// TestLiftedGateIsKeptAndLiftsNoOther checks that a gate whose tokens are far
// ahead of the clock is stored until the clock has passed them, and does not raise
// other gates.
func TestLiftedGateIsKeptAndLiftsNoOther(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		ahead := uint64(time.Now().Add(240 * time.Hour).UnixMicro()) //nolint:gosec // positive
		_, err := f.Repair(t.Context(), f.gate, ahead, f.terms)
		require.NoError(t, err)
		require.Greater(t, uint64(f.use(t)), ahead)
		require.Greater(t, f.rdb.PTTL(t.Context(), f.keys(f.gate).state(f.gate)).Val(), 239*time.Hour)
		other := f.other()
		other.gate += ".other"
		require.Less(t, uint64(other.use(t)), ahead)
		_, err = f.Repair(t.Context(), f.gate, MaxFloor+1, f.terms)
		require.ErrorIs(t, err, wakebelltype.ErrInvalid)
	})
}

// TestDeadlineOfExpiredGateIsRemoved checks that the deadline of an expired gate
// does not notify processes forever.
func TestDeadlineOfExpiredGateIsRemoved(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Start(t).Client(t))
	f.join(t)
	f.expire(t)
	require.NotZero(t, f.rdb.ZCard(t.Context(), f.keys(f.gate).Deadlines).Val())
	f.do(t)
	require.Zero(t, f.rdb.ZCard(t.Context(), f.keys(f.gate).Deadlines).Val())
}

func TestGateIsRemoved(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		remove := func(force bool) Removal {
			t.Helper()
			r, err := f.Remove(t.Context(), f.gate, force, f.terms)
			require.NoError(t, err)
			return r
		}
		require.Equal(t, Removal{}, remove(false))
		first := f.use(t)
		require.NoError(t, f.Guard(t.Context(), f.gate, "db", uint64(first), false))
		require.Equal(t, Removal{Existed: true, Last: uint64(first)}, remove(false))
		require.Equal(t, Removal{}, remove(true), "it is gone")
		require.Empty(t, f.show(t).Guard)

		a, b := f, f.other()
		second, turn := a.join(t)
		require.True(t, turn)
		require.Greater(t, second, first)
		third, _ := b.join(t)
		inUse := Removal{Existed: true, InUse: true, Holder: uint64(second), Waiting: 1, Last: uint64(third)}
		require.Equal(t, inUse, remove(false))
		require.Equal(t, []bool{false}, a.beat(t, second).Lost, "the gate was not changed")
		inUse.InUse = false
		require.Equal(t, inUse, remove(true))
		require.Equal(t, []bool{true}, a.beat(t, second).Lost)
		require.Zero(t, f.rdb.Exists(t.Context(), f.keys(f.gate).state(f.gate), f.keys(f.gate).stream(f.gate)).Val())
		_, err := f.rdb.ZScore(t.Context(), f.keys(f.gate).Deadlines, f.gate).Result()
		require.Error(t, err)

		for _, stale := range []gate.Ticket{first, second, third} {
			require.ErrorIs(t, f.Guard(t.Context(), f.gate, "db", uint64(stale), false), ErrFenceStale)
		}
		fourth, turn := b.join(t)
		require.True(t, turn)
		require.Greater(t, fourth, third)
		require.NoError(t, f.Guard(t.Context(), f.gate, "db", uint64(fourth), false))
	})
}

// A key of another type affects only its own gate.
func TestBrokenGateEndsNoOtherTurn(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Start(t).Client(t))
	names := []string{f.gate + ".a", f.gate + ".b", f.gate + ".c", f.gate + ".d"}
	var turns []gate.Held
	for _, name := range names {
		f.gate = name
		ticket, _ := f.join(t)
		turns = append(turns, gate.Held{Gate: name, Ticket: ticket})
	}
	for _, key := range []string{f.keys(names[1]).state(names[1]), f.keys(names[2]).stream(names[2])} {
		require.NoError(t, f.rdb.Set(t.Context(), key, "in the way", 0).Err())
	}
	reply, err := f.Heartbeat(t.Context(), &gate.Heartbeat{Process: f.process, Turns: turns, Terms: f.terms})
	require.NoError(t, err)
	require.Equal(t, []bool{false, true, false, false}, reply.Lost)
	places, err := f.Places(t.Context(), turns)
	require.NoError(t, err)
	require.Equal(t, []gate.Place{gate.Granted, gate.Gone, gate.Gone, gate.Granted}, places)

	found := map[string]error{}
	for g, err := range f.List(t.Context(), "") {
		require.NoError(t, err)
		found[g.Name] = g.Err
	}
	require.Len(t, found, 4)
	require.NoError(t, found[names[0]])
	require.ErrorIs(t, found[names[1]], wakebelltype.ErrWrongType)
	require.ErrorIs(t, found[names[2]], wakebelltype.ErrWrongType)
	require.NoError(t, found[names[3]])

	// The overdue gate is broken, so it must not be reported as overdue forever.
	f.gate = names[1]
	_, err = f.Exchange(t.Context(), f.request())
	require.ErrorIs(t, err, wakebelltype.ErrWrongType)
	require.ErrorContains(t, err, strconv.Quote(f.keys(names[1]).state(names[1])))
	require.EqualValues(t, 3, f.rdb.ZCard(t.Context(), f.keys(f.gate).Deadlines).Val())
}

// TestLateLookConfirmsNothing checks that a late copy of a request confirms no
// grant that its process has not received.
func TestLateLookConfirmsNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		a, b := f, f.other()
		first, _ := a.join(t)
		second, _ := b.join(t)
		look := b.request()
		answered, err := b.Exchange(t.Context(), look)
		require.NoError(t, err)
		require.Zero(t, answered.Held)
		require.True(t, a.give(t, first))
		require.Equal(t, wakebelltype.GateTicket{Fence: uint64(second), Process: b.process}, f.show(t).Holder)

		again, err := b.Exchange(t.Context(), look)
		require.NoError(t, err)
		require.Equal(t, answered, again)
		require.False(t, f.show(t).Confirmed)
		require.Equal(t, second, b.held(t))
		require.True(t, f.show(t).Confirmed)
	})
}

// TestKeysOfProcessWithoutBeatHaveEnd has a process that dies before its first heartbeat, with
// a turn: the keys that all gates share expire, too. Only the mark stays.
func TestKeysOfProcessWithoutBeatHaveEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Start(t).Client(t))
	_, turn := f.join(t)
	require.True(t, turn)
	keys, err := f.rdb.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.NotEmpty(t, keys)
	for _, key := range keys {
		if !strings.HasSuffix(key, ":mark") {
			require.Positive(t, f.rdb.PTTL(t.Context(), key).Val(), key)
		}
	}
}
