package wire

import (
	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/text"
	fields "github.com/wakebell/wakebell/internal/wire"
	"github.com/wakebell/wakebell/messages"
)

// GateMessage converts the state of a gate to a message.
func GateMessage(g gate.Info) *messages.GateState {
	m := &messages.GateState{
		Gate: text.Valid(g.Name), Now: fields.Timestamp(g.Now), Confirmed: g.Confirmed, Until: fields.Timestamp(g.Until),
		Waiting: fields.Count(g.Waiting), LastFence: g.LastFence, Guard: make(map[string]uint64, len(g.Guard)),
	}
	if g.Holder.Fence != 0 {
		m.Holder = ticketMessage(g.Holder)
	}
	if g.Err != nil {
		m.Fault = wakebell.ErrorMessage(g.Err)
	}
	for _, w := range g.Waiters {
		m.Waiters = append(m.Waiters, ticketMessage(w))
	}
	for resource, fence := range g.Guard {
		m.Guard[text.Valid(resource)] = max(fence, m.Guard[text.Valid(resource)]) // different names can become equal once they are valid UTF-8
	}
	return m
}

func ticketMessage(t gate.Ticket) *messages.GateTicket {
	return &messages.GateTicket{Fence: t.Fence, Process: text.Valid(t.Process)}
}

// GateOf is the inverse of GateMessage.
func GateOf(m *messages.GateState) gate.Info {
	g := gate.Info{
		Name: m.GetGate(), Now: fields.Time(m.GetNow()), Holder: ticketOf(m.GetHolder()), Confirmed: m.GetConfirmed(),
		Until: fields.Time(m.GetUntil()), Waiting: int(m.GetWaiting()), LastFence: m.GetLastFence(), Guard: m.GetGuard(),
	}
	if m.GetFault() != nil {
		g.Err = wakebell.AnswerError(m.GetFault())
	}
	if g.Guard == nil {
		g.Guard = map[string]uint64{}
	}
	for _, w := range m.GetWaiters() {
		g.Waiters = append(g.Waiters, ticketOf(w))
	}
	return g
}

func ticketOf(m *messages.GateTicket) gate.Ticket {
	return gate.Ticket{Fence: m.GetFence(), Process: m.GetProcess()}
}
