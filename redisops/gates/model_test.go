package gates

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/messages/gate"
	"github.com/wakebell/wakebell/wakebelltype"
)

// model is a gate in plain Go: a queue whose first ticket has the turn. Leases are
// long, so that the result does not depend on the clock; expiry has tests of its
// own.
type model struct {
	t         testing.TB
	processes []*gateModelProcess
	queue     []gateModelTicket
	confirmed bool        // the process has received its turn
	last      gate.Ticket // the last ticket issued
	granted   gate.Ticket // the highest ticket that has had the turn
	guard     gate.Ticket // newest token used

	tail  *gateModelProcess // process of the last ticket
	since gate.Ticket       // first of the tail process's tickets without a later ticket of another process
}

type gateModelTicket struct {
	ticket  gate.Ticket
	process *gateModelProcess
}

type gateModelProcess struct {
	*fixture
	seen  []gate.Ticket
	last  *gate.Request
	reply *gate.Reply
}

func TestGateModel(t *testing.T) {
	t.Parallel()
	checkModel(t, newFixture(t, redistest.Shared(t)))
}

// The gates of the model are in slots of all masters of the Cluster.
func TestGateModelOnCluster(t *testing.T) {
	t.Parallel()
	s, err := New(redistest.Cluster(t).Client(t), wakebelltype.GateKeys{}, nil)
	require.NoError(t, err)
	checkModel(t, fixtureOf(t, s, nil))
}

func checkModel(t *testing.T, base *fixture) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{t: t}
		name := fmt.Sprintf("model-%x", rand.Uint64())
		for range 3 {
			f := base.other()
			f.gate = name
			m.processes = append(m.processes, &gateModelProcess{fixture: f})
		}
		rt.Repeat(map[string]func(*rapid.T){
			"step":   m.step,
			"look":   m.look,
			"replay": m.replay,
			"force":  m.force,
			"beat":   m.beat,
			"guard":  m.useGuard,
			"repair": m.repair,
			"":       m.check,
		})
	})
}

func (m *model) process(rt *rapid.T) *gateModelProcess {
	return rapid.SampledFrom(m.processes).Draw(rt, "process")
}

// remove removes a ticket.
func (m *model) remove(ticket gate.Ticket) {
	i := slices.IndexFunc(m.queue, func(q gateModelTicket) bool { return q.ticket == ticket })
	if i < 0 {
		return
	}
	m.queue = slices.Delete(m.queue, i, i+1)
	if i == 0 {
		m.confirmed = false
	}
}

// held returns the ticket of a process that has the turn, and confirms it.
func (m *model) held(p *gateModelProcess) gate.Ticket {
	if len(m.queue) == 0 || m.queue[0].process != p {
		return 0
	}
	m.confirmed = true
	return m.queue[0].ticket
}

// step runs several operations of a process at once: first releases, then joins,
// then tries.
func (m *model) step(rt *rapid.T) {
	p := m.process(rt)
	var ops []gate.Op
	for range rapid.IntRange(1, 4).Draw(rt, "ops") {
		op := gate.Op{Kind: rapid.SampledFrom([]gate.Kind{gate.Join, gate.Join, gate.Try, gate.Give}).Draw(rt, "kind")}
		if op.Kind == gate.Give {
			if len(p.seen) == 0 {
				continue
			}
			op.Ticket = rapid.SampledFrom(p.seen).Draw(rt, "ticket")
		}
		ops = append(ops, op)
	}
	if len(ops) == 0 {
		return
	}
	var turn gate.Ticket
	if len(m.queue) > 0 {
		turn = m.queue[0].ticket
	}
	p.last = p.request(ops...)
	p.reply = m.exchange(rt, p, p.last)
	for _, kind := range []gate.Kind{gate.Give, gate.Join, gate.Try} {
		for i, op := range ops {
			if op.Kind != kind {
				continue
			}
			done := p.reply.Done[i]
			switch {
			case kind == gate.Give:
				m.remove(op.Ticket)
				require.Equal(rt, op.Ticket == turn, done.Had)
				if done.Had {
					turn = 0 // it is released once
				}
			case kind == gate.Try && len(m.queue) > 0:
				require.Zero(rt, done.Ticket)
			default:
				require.Greater(rt, done.Ticket, m.last)
				m.last = done.Ticket
				if m.tail != p {
					m.tail, m.since = p, done.Ticket
				}
				m.queue = append(m.queue, gateModelTicket{done.Ticket, p})
				p.seen = append(p.seen, done.Ticket)
			}
		}
	}
	require.Equal(rt, m.held(p), p.reply.Held)
	m.checkSince(rt, p, p.reply)
}

// checkSince compares which consecutive tickets belong to one process.
func (m *model) checkSince(rt *rapid.T, p *gateModelProcess, reply *gate.Reply) {
	if m.tail != p {
		require.Zero(rt, reply.Since)
		return
	}
	require.Equal(rt, m.since, reply.Since)
}

func (m *model) exchange(rt *rapid.T, p *gateModelProcess, r *gate.Request) *gate.Reply {
	reply, err := p.Exchange(m.t.Context(), r)
	require.NoError(rt, err)
	return reply
}

func (m *model) look(rt *rapid.T) {
	p := m.process(rt)
	p.last = p.request()
	p.reply = m.exchange(rt, p, p.last)
	require.Equal(rt, m.held(p), p.reply.Held)
	m.checkSince(rt, p, p.reply)
}

// replay sends the last request again: the reply is the same and nothing changes.
// An earlier request is refused.
func (m *model) replay(rt *rapid.T) {
	p := m.process(rt)
	if p.last == nil {
		return
	}
	require.Equal(rt, p.reply, m.exchange(rt, p, p.last))
	late := *p.last
	late.Sequence--
	if late.Sequence > 0 {
		_, err := p.Exchange(m.t.Context(), &late)
		require.ErrorIs(rt, err, exchange.ErrStale)
	}
}

// force revokes a turn that any process holds.
func (m *model) force(rt *rapid.T) {
	p := m.process(rt)
	if len(p.seen) == 0 {
		return
	}
	ticket := rapid.SampledFrom(p.seen).Draw(rt, "ticket")
	want := len(m.queue) > 0 && m.queue[0].ticket == ticket
	had, err := p.Release(m.t.Context(), p.gate, uint64(ticket), longTerms)
	require.NoError(rt, err)
	require.Equal(rt, want, had)
	if want {
		m.remove(ticket)
	}
}

// beat extends held turns and nothing else.
func (m *model) beat(rt *rapid.T) {
	p := m.process(rt)
	if len(p.seen) == 0 {
		return
	}
	ticket := rapid.SampledFrom(p.seen).Draw(rt, "ticket")
	held := len(m.queue) > 0 && m.queue[0].ticket == ticket
	require.Equal(rt, []bool{!held}, p.fixture.beat(m.t, ticket).Lost)
	m.confirmed = m.confirmed || held
}

func (m *model) useGuard(rt *rapid.T) {
	p := m.process(rt)
	if len(p.seen) == 0 {
		return
	}
	ticket := rapid.SampledFrom(p.seen).Draw(rt, "ticket")
	err := p.Guard(m.t.Context(), p.gate, "db", uint64(ticket), false)
	switch {
	case ticket > m.granted && !m.passable(ticket):
		require.ErrorIs(rt, err, ErrFenceUnknown)
		return
	case ticket < m.guard:
		if len(m.queue) > 0 && m.queue[0].ticket == ticket {
			require.ErrorIs(rt, err, ErrFenceRegressed)
		} else {
			require.ErrorIs(rt, err, ErrFenceStale)
		}
		return
	}
	require.NoError(rt, err)
	m.guard = ticket
}

// passable reports whether the process that has the turn may have passed it on to
// a ticket.
func (m *model) passable(ticket gate.Ticket) bool {
	i := slices.IndexFunc(m.queue, func(q gateModelTicket) bool { return q.ticket == ticket })
	return i >= 0 && m.queue[i].process == m.queue[0].process
}

// repair removes tickets below the guard's tokens, and nothing in a consistent
// gate.
func (m *model) repair(rt *rapid.T) {
	p := m.process(rt)
	var behind []gate.Ticket
	for _, q := range m.queue {
		if q.ticket < m.guard || q.ticket == m.guard && q != m.queue[0] {
			behind = append(behind, q.ticket)
		}
	}
	r, err := p.Repair(m.t.Context(), p.gate, 0, longTerms)
	require.NoError(rt, err)
	require.Equal(rt, len(behind), r.Removed)
	require.GreaterOrEqual(rt, r.After, r.Before)
	for _, ticket := range behind {
		m.remove(ticket)
	}
	m.granted = max(m.granted, m.guard)
}

// check compares all of the gate with the model.
func (m *model) check(rt *rapid.T) {
	if len(m.queue) > 0 {
		m.granted = max(m.granted, m.queue[0].ticket)
	}
	info := m.processes[0].show(m.t)
	require.EqualValues(rt, m.last, info.LastFence)
	var want []wakebelltype.GateTicket
	for _, q := range m.queue {
		want = append(want, wakebelltype.GateTicket{Fence: uint64(q.ticket), Process: q.process.process})
	}
	var got []wakebelltype.GateTicket
	if info.Holder.Fence != 0 {
		got = append(got, info.Holder)
		require.Equal(rt, m.confirmed, info.Confirmed)
	}
	require.Equal(rt, want, append(got, info.Waiters...))
	require.Equal(rt, max(len(want)-1, 0), info.Waiting)
}
