package gates

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/messages/gate"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// fixture is a process at a gate of its own.
type fixture struct {
	*Store
	rdb      redis.UniversalClient
	gate     string
	process  string
	terms    gate.Terms
	sequence uint64
	numbers  uint64
}

// longTerms are so long that the result does not depend on the clock.
var longTerms = gate.Terms{Lease: time.Hour, Signal: time.Hour, Presence: time.Hour}

func newFixture(t testing.TB, rdb redis.UniversalClient) *fixture {
	t.Helper()
	rdb.AddHook(storetest.Contract(t, lua, namedKey))
	s, err := New(rdb, wakebelltype.GateKeys{}, nil)
	require.NoError(t, err)
	return fixtureOf(t, s, rdb)
}

func fixtureOf(t testing.TB, s *Store, rdb redis.UniversalClient) *fixture {
	t.Helper()
	f := &fixture{Store: s, rdb: rdb, gate: fmt.Sprintf("%s-%x", t.Name(), rand.Uint64())}
	return f.other()
}

// other returns another process at the same gate.
func (f *fixture) other() *fixture {
	return &fixture{Store: f.Store, rdb: f.rdb, gate: f.gate, process: fmt.Sprintf("host:1:%x", rand.Uint64()), terms: longTerms}
}

// onEach runs a test on a real Redis, on the embedded one, and on a Cluster, where gates
// are divided.
func onEach(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	storetest.OnEach(t, func(t testing.TB, rdb *redis.Client) *fixture {
		t.Helper()
		return newFixture(t, rdb)
	}, test)
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		test(t, newFixture(t, redistest.SharedCluster(t)))
	})
}

func (f *fixture) request(ops ...gate.Op) *gate.Request {
	f.sequence++
	for i := range ops {
		if ops[i].Kind != gate.Give {
			f.numbers++
			ops[i].Number = f.numbers
		}
	}
	return &gate.Request{Gate: f.gate, Process: f.process, Sequence: f.sequence, Ops: ops, Terms: f.terms}
}

func (f *fixture) do(t testing.TB, ops ...gate.Op) *gate.Reply {
	t.Helper()
	reply, err := f.Exchange(t.Context(), f.request(ops...))
	require.NoError(t, err)
	return reply
}

// join takes a ticket and reports whether it has the turn.
func (f *fixture) join(t testing.TB) (ticket gate.Ticket, turn bool) {
	t.Helper()
	reply := f.do(t, gate.Op{Kind: gate.Join})
	return reply.Done[0].Ticket, reply.Held == reply.Done[0].Ticket
}

func (f *fixture) give(t testing.TB, ticket gate.Ticket) (had bool) {
	t.Helper()
	return f.do(t, gate.Op{Kind: gate.Give, Ticket: ticket}).Done[0].Had
}

func (f *fixture) held(t testing.TB) gate.Ticket {
	t.Helper()
	return f.do(t).Held
}

func (f *fixture) beat(t testing.TB, turns ...gate.Ticket) *gate.HeartbeatReply {
	t.Helper()
	b := &gate.Heartbeat{Process: f.process, Part: f.Part(f.gate), Terms: f.terms}
	for _, turn := range turns {
		b.Turns = append(b.Turns, gate.Held{Gate: f.gate, Ticket: turn})
	}
	reply, err := f.Heartbeat(t.Context(), b)
	require.NoError(t, err)
	return reply
}

func (f *fixture) show(t testing.TB) wakebelltype.GateInfo {
	t.Helper()
	info, err := f.Show(t.Context(), f.gate)
	require.NoError(t, err)
	return info
}

func TestGateIsFIFO(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		a, b := f, f.other()
		first, turn := a.join(t)
		require.True(t, turn)
		second, turn := b.join(t)
		require.False(t, turn)
		require.Greater(t, second, first)
		third, turn := a.join(t)
		require.False(t, turn)
		require.Zero(t, a.do(t, gate.Op{Kind: gate.Try}).Done[0].Ticket, "held")

		require.True(t, a.give(t, first))
		info := f.show(t)
		require.Equal(t, wakebelltype.GateTicket{Fence: uint64(second), Process: b.process}, info.Holder)
		require.False(t, info.Confirmed)
		require.Equal(t, []wakebelltype.GateTicket{{Fence: uint64(third), Process: a.process}}, info.Waiters)
		require.Equal(t, second, b.held(t))
		require.True(t, f.show(t).Confirmed)
		require.False(t, a.give(t, first), "the turn has ended")
		reply := b.do(t, gate.Op{Kind: gate.Join}, gate.Op{Kind: gate.Give, Ticket: second})
		require.True(t, reply.Done[1].Had)
		require.Zero(t, reply.Held)
		require.Equal(t, third, a.held(t))
		require.True(t, a.give(t, third))
		require.Equal(t, reply.Done[0].Ticket, b.held(t))
		require.True(t, b.give(t, reply.Done[0].Ticket))
		require.NotZero(t, a.do(t, gate.Op{Kind: gate.Try}).Held)
	})
}

// TestStreamShowsHolderAndWaiters checks that the stream shows what users of the
// Python lock read.
func TestStreamShowsHolderAndWaiters(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		first, _ := f.join(t)
		second, _ := f.join(t)
		id := func(ticket gate.Ticket) string { return strconv.FormatUint(uint64(ticket), 10) + "-0" }
		stream := f.keys(f.gate).stream(f.gate)
		pending := f.rdb.XPendingExt(t.Context(), &redis.XPendingExtArgs{Stream: stream, Group: "gates", Start: "-", End: "+", Count: 9}).Val()
		require.Len(t, pending, 1)
		require.Equal(t, id(first), pending[0].ID)
		entries := f.rdb.XRange(t.Context(), stream, "-", "+").Val()
		require.Equal(t, []redis.XMessage{
			{ID: id(first), Values: map[string]any{"owner": f.process + "#1"}},
			{ID: id(second), Values: map[string]any{"owner": f.process + "#2"}},
		}, entries)
		groups := f.rdb.XInfoGroups(t.Context(), stream).Val()
		require.Equal(t, int64(1), groups[0].Pending)
		require.Equal(t, id(first), groups[0].LastDeliveredID)
		f.give(t, first)
		f.give(t, second)
		require.Zero(t, f.rdb.XLen(t.Context(), stream).Val(), "the stream is trimmed")
		require.Zero(t, f.rdb.XPending(t.Context(), stream, "gates").Val().Count)
	})
}

func TestExchangeOfGateIsReplaySafe(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		join := f.request(gate.Op{Kind: gate.Join}, gate.Op{Kind: gate.Join})
		first, err := f.Exchange(t.Context(), join)
		require.NoError(t, err)
		again, err := f.Exchange(t.Context(), join)
		require.NoError(t, err)
		require.Equal(t, first, again)
		require.Equal(t, 1, f.show(t).Waiting)

		give := f.request(gate.Op{Kind: gate.Give, Ticket: first.Held})
		for range 2 {
			reply, err := f.Exchange(t.Context(), give)
			require.NoError(t, err)
			require.True(t, reply.Done[0].Had, "also when it is repeated")
			require.Equal(t, first.Done[1].Ticket, reply.Held)
		}
		_, err = f.Exchange(t.Context(), join)
		require.ErrorIs(t, err, exchange.ErrStale)
		require.Zero(t, f.show(t).Waiting, "the request changed nothing")
	})
}

// TestLeaseEnds checks that a turn lasts as long as it is extended, and then for
// one lease.
func TestLeaseEnds(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		a, b := f, f.other()
		first, _ := a.join(t)
		second, turn := b.join(t)
		require.False(t, turn)
		before := f.show(t).Until
		a.terms.Lease = 2 * time.Hour
		require.Equal(t, []bool{false}, a.beat(t, first).Lost)
		require.GreaterOrEqual(t, f.show(t).Until.Sub(before), time.Hour)
		a.terms.Lease = time.Millisecond
		require.Equal(t, []bool{false}, a.beat(t, first).Lost)
		require.Eventually(t, func() bool { return b.held(t) == second }, 30*time.Second, time.Millisecond)
		require.Equal(t, []bool{true}, a.beat(t, first).Lost)
		require.False(t, a.give(t, first), "a stale release changes nothing")
		require.Equal(t, second, b.held(t))
	})
}

func TestOverdueGatesAreNamed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Start(t).Client(t)) // all gates share the deadlines
	a, b := f, f.other()
	first, _ := a.join(t)
	waiting, _ := b.join(t)
	require.Empty(t, b.beat(t).Overdue)
	a.terms.Lease = time.Millisecond
	a.beat(t, first)
	for len(b.beat(t).Overdue) == 0 {
		require.NoError(t, t.Context().Err())
	}
	require.Equal(t, []string{f.gate}, b.beat(t).Overdue)
	require.Equal(t, waiting, b.held(t))
	require.Empty(t, b.beat(t).Overdue)
}

// TestUnconfirmedGrantPassesOn checks that a grant waits for its process no
// longer than Signal.
func TestUnconfirmedGrantPassesOn(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		a, b, c := f, f.other(), f.other()
		first, _ := a.join(t)
		dead, _ := b.join(t)
		third, _ := c.join(t)
		a.terms.Signal = time.Millisecond
		require.True(t, a.give(t, first))
		require.Eventually(t, func() bool { return c.held(t) == third }, 30*time.Second, time.Millisecond)
		require.Zero(t, b.held(t))
		places, err := f.Places(t.Context(), []gate.Held{{Gate: f.gate, Ticket: dead}, {Gate: f.gate, Ticket: third}})
		require.NoError(t, err)
		require.Equal(t, []gate.Place{gate.Gone, gate.Granted}, places)
	})
}

// TestTicketsOfDeadProcessesAreSkipped checks that the tickets of dead processes
// are skipped in one step.
func TestTicketsOfDeadProcessesAreSkipped(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Start(t).Client(t)) // all gates share the presence
	a, dead, c := f, f.other(), f.other()
	c.beat(t)
	first, _ := a.join(t)
	for range 2500 {
		dead.terms.Presence = 0
		dead.do(t, gate.Op{Kind: gate.Join})
	}
	third, _ := c.join(t)
	require.NoError(t, f.rdb.ZRem(t.Context(), f.keys(f.gate).Presence, "grace").Err()) // as after its presence has expired
	c.beat(t)
	reply := a.do(t, gate.Op{Kind: gate.Give, Ticket: first})
	require.True(t, reply.More, "a step is bounded")
	require.True(t, a.do(t).More)
	require.False(t, a.do(t).More)
	require.Equal(t, third, c.held(t))
	require.Zero(t, f.show(t).Waiting)
}

// TestAfterOutageNoProcessCountsAsDead checks that absence proves nothing after a
// time without heartbeats: neither before the first heartbeat, nor for a while
// after it.
func TestAfterOutageNoProcessCountsAsDead(t *testing.T) {
	t.Parallel()
	for _, beaten := range []bool{false, true} {
		f := newFixture(t, redistest.Start(t).Client(t))
		a, b := f, f.other()
		for _, p := range []*fixture{a, b} {
			p.terms.Presence = 20 * time.Millisecond
			if beaten {
				p.terms.Presence = 5 * time.Second // during this time no process counts as dead
			}
			p.beat(t)
		}
		first, _ := a.join(t)
		second, _ := b.join(t)
		require.Eventually(t, func() bool {
			now := strconv.FormatInt(time.Now().UnixMicro(), 10)
			return f.rdb.ZCount(t.Context(), f.keys(f.gate).Presence, now, "+inf").Val() == 0
		}, 30*time.Second, 5*time.Millisecond)
		if beaten {
			require.True(t, a.beat(t, first).Lapsed)
		}
		a.give(t, first)
		require.Equal(t, second, b.held(t))
	}
}

// namedKey reports whether a key is the one that headers call word.
func namedKey(key, word string) bool {
	return strings.HasPrefix(layout.Unnumbered(key), "{gates}:"+word)
}
