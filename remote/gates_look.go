package remote

import (
	"context"
	"iter"

	"google.golang.org/grpc"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/messages"
)

var (
	gateOperations = []grpc.MethodDesc{operation(showGate), operation(releaseGate), operation(repairGate), operation(removeGate)}
	gateStreams    = []grpc.StreamDesc{listing(listGates)}
)

var _ gate.Operator = (*Gates)(nil)

func listGates(ctx context.Context, o *operations, _ *messages.ListGates) iter.Seq2[*messages.GateState, error] {
	return each(func(yield func(gate.Info, error) bool) {
		for gate, err := range o.system.Gates().List(ctx) {
			if (err != nil || o.sees(ctx, KindGate, gate.Name)) && !yield(gate, err) {
				return
			}
		}
	}, gateMessage)
}

// List is that of gate.Gates. When the link breaks it ends with
// wakebell.ErrUnavailable.
func (g *Gates) List(ctx context.Context) iter.Seq2[gate.Info, error] {
	return each(list[messages.GateState](ctx, g.client, &messages.ListGates{}), gateOf)
}

func showGate(ctx context.Context, o *operations, m *messages.ShowGate) (*messages.GateState, error) {
	info, err := o.system.Gates().Show(ctx, m.GetGate())
	return gateMessage(info), err
}

// Show is that of gate.Gates.
func (g *Gates) Show(ctx context.Context, name string) (gate.Info, error) {
	answer, err := operate[messages.GateState](ctx, g.client, &messages.ShowGate{Gate: name})
	if err != nil {
		return gate.Info{}, err
	}
	return gateOf(answer), nil
}

func releaseGate(ctx context.Context, o *operations, m *messages.ReleaseGate) (*messages.GateReleased, error) {
	released, err := o.system.Gates().ForceRelease(ctx, m.GetGate(), m.GetFence())
	return &messages.GateReleased{Released: released}, err
}

// ForceRelease is that of gate.Gates. When the link breaks it may report that
// the token did not have the turn that it has taken away.
func (g *Gates) ForceRelease(ctx context.Context, name string, fence uint64) (bool, error) {
	answer, err := operate[messages.GateReleased](ctx, g.client, &messages.ReleaseGate{Gate: name, Fence: fence})
	return answer.GetReleased(), err
}

func repairGate(ctx context.Context, o *operations, m *messages.RepairGate) (*messages.GateRepaired, error) {
	done, err := o.system.Gates().Repair(ctx, m.GetGate(), m.GetFloor())
	return &messages.GateRepaired{Before: done.Before, After: done.After, Removed: count(done.Removed), Cleared: count(done.Cleared)}, err
}

// Repair is that of gate.Gates. When the link breaks it may tell of a gate
// that it has repaired already.
func (g *Gates) Repair(ctx context.Context, name string, floor uint64) (gate.Repaired, error) {
	answer, err := operate[messages.GateRepaired](ctx, g.client, &messages.RepairGate{Gate: name, Floor: floor})
	if err != nil {
		return gate.Repaired{}, err
	}
	return gate.Repaired{
		Before: answer.GetBefore(), After: answer.GetAfter(), Removed: int(answer.GetRemoved()), Cleared: int(answer.GetCleared()),
	}, nil
}

func removeGate(ctx context.Context, o *operations, m *messages.RemoveGate) (*messages.GateRemoved, error) {
	existed, err := o.system.Gates().Remove(ctx, m.GetGate(), m.GetForce())
	return &messages.GateRemoved{Existed: existed}, err
}

// Remove is that of gate.Gates. When the link breaks it may report that there
// was no gate where it has removed one.
func (g *Gates) Remove(ctx context.Context, name string, force bool) (bool, error) {
	answer, err := operate[messages.GateRemoved](ctx, g.client, &messages.RemoveGate{Gate: name, Force: force})
	return answer.GetExisted(), err
}

func gateMessage(g gate.Info) *messages.GateState {
	m := &messages.GateState{
		Gate: text(g.Name), Now: timestamp(g.Now), Confirmed: g.Confirmed, Until: timestamp(g.Until),
		Waiting: count(g.Waiting), LastFence: g.LastFence, Guard: make(map[string]uint64, len(g.Guard)),
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
		m.Guard[text(resource)] = max(fence, m.Guard[text(resource)]) // of names that travel as one
	}
	return m
}

func ticketMessage(t gate.Ticket) *messages.GateTicket {
	return &messages.GateTicket{Fence: t.Fence, Process: text(t.Process)}
}

func gateOf(m *messages.GateState) gate.Info {
	g := gate.Info{
		Name: m.GetGate(), Now: instantOf(m.GetNow()), Holder: ticketOf(m.GetHolder()), Confirmed: m.GetConfirmed(),
		Until: instantOf(m.GetUntil()), Waiting: int(m.GetWaiting()), LastFence: m.GetLastFence(), Guard: m.GetGuard(),
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
