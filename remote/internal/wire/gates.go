package wire

import (
	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/wakebelltype"
)

// GateMessage converts the state of a gate to a message.
func GateMessage(g wakebelltype.GateInfo) *messages.GateState {
	m := &messages.GateState{
		Gate: text.Valid(g.Name), Now: convert.Timestamp(g.Now), Confirmed: g.Confirmed, Until: convert.Timestamp(g.Until), Since: convert.Timestamp(g.Since),
		Waiting: convert.Count(g.Waiting), LastFence: g.LastFence, Guard: make(map[string]uint64, len(g.Guard)),
	}
	if g.Holder.Fence != 0 {
		m.Holder = ticketMessage(g.Holder)
	}
	if g.Err != nil {
		m.Fault = convert.ErrorMessage(g.Err)
	}
	for _, w := range g.Waiters {
		m.Waiters = append(m.Waiters, ticketMessage(w))
	}
	for _, h := range g.Holds {
		m.Holds = append(m.Holds, &messages.GateHolds{UpTo: Span(h.UpTo), Turns: h.Turns})
	}
	for resource, fence := range g.Guard {
		m.Guard[text.Valid(resource)] = max(fence, m.Guard[text.Valid(resource)]) // different names can become equal once they are valid UTF-8
	}
	return m
}

func ticketMessage(t wakebelltype.GateTicket) *messages.GateTicket {
	return &messages.GateTicket{Fence: t.Fence, Process: text.Valid(t.Process)}
}

// GateOf is the inverse of GateMessage.
func GateOf(m *messages.GateState) wakebelltype.GateInfo {
	g := wakebelltype.GateInfo{
		Name: m.GetGate(), Now: convert.Time(m.GetNow()), Holder: ticketOf(m.GetHolder()), Confirmed: m.GetConfirmed(),
		Until: convert.Time(m.GetUntil()), Since: convert.Time(m.GetSince()), Waiting: int(m.GetWaiting()), LastFence: m.GetLastFence(), Guard: m.GetGuard(),
	}
	if m.GetFault() != nil {
		g.Err = wakebell.AnswerError(m.GetFault())
	}
	if g.Guard == nil {
		g.Guard = map[string]uint64{}
	}
	for _, h := range m.GetHolds() {
		g.Holds = append(g.Holds, wakebelltype.GateHolds{UpTo: h.GetUpTo().AsDuration(), Turns: h.GetTurns()})
	}
	for _, w := range m.GetWaiters() {
		g.Waiters = append(g.Waiters, ticketOf(w))
	}
	return g
}

func ticketOf(m *messages.GateTicket) wakebelltype.GateTicket {
	return wakebelltype.GateTicket{Fence: m.GetFence(), Process: m.GetProcess()}
}
