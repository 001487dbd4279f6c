package remote

import (
	"context"
	"iter"

	"google.golang.org/grpc"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
)

var _ gate.Operator = (*Gates)(nil)

func (o *operations) ListGates(m *messages.ListGatesRequest, stream grpc.ServerStreamingServer[messages.ListGatesResponse]) error {
	return listing(o, m, stream, o.listGates)
}

func (o *operations) listGates(ctx context.Context, _ *messages.ListGatesRequest) iter.Seq2[*messages.ListGatesResponse, error] {
	return each(func(yield func(gate.Info, error) bool) {
		for gate, err := range o.system.Gates().List(ctx) {
			if (err != nil || o.sees(ctx, KindGate, gate.Name)) && !yield(gate, err) {
				return
			}
		}
	}, func(g gate.Info) *messages.ListGatesResponse {
		return &messages.ListGatesResponse{Gate: gateMessage(g)}
	})
}

// List is that of gate.Gates. When the link breaks it ends with
// wakebell.ErrUnavailable.
func (g *Gates) List(ctx context.Context) iter.Seq2[gate.Info, error] {
	return each(list(ctx, g.client, rpc.OperationsClient.ListGates, &messages.ListGatesRequest{}), func(m *messages.ListGatesResponse) gate.Info {
		return gateOf(m.GetGate())
	})
}

func (o *operations) GetGate(ctx context.Context, m *messages.GetGateRequest) (*messages.GetGateResponse, error) {
	info, err := o.system.Gates().Show(ctx, m.GetGate())
	return &messages.GetGateResponse{Gate: gateMessage(info)}, err
}

// Show is that of gate.Gates.
func (g *Gates) Show(ctx context.Context, name string) (gate.Info, error) {
	answer, err := operate(ctx, g.client, rpc.OperationsClient.GetGate, &messages.GetGateRequest{Gate: name})
	if err != nil {
		return gate.Info{}, err
	}
	return gateOf(answer.GetGate()), nil
}

func (o *operations) ReleaseGate(ctx context.Context, m *messages.ReleaseGateRequest) (*messages.ReleaseGateResponse, error) {
	released, err := o.system.Gates().ForceRelease(ctx, m.GetGate(), m.GetFence())
	return &messages.ReleaseGateResponse{Released: released}, err
}

// ForceRelease is that of gate.Gates. When the link breaks it may report that
// the token did not have the turn that it has taken away.
func (g *Gates) ForceRelease(ctx context.Context, name string, fence uint64) (bool, error) {
	answer, err := operate(ctx, g.client, rpc.OperationsClient.ReleaseGate, &messages.ReleaseGateRequest{Gate: name, Fence: fence})
	return answer.GetReleased(), err
}

func (o *operations) RepairGate(ctx context.Context, m *messages.RepairGateRequest) (*messages.RepairGateResponse, error) {
	done, err := o.system.Gates().Repair(ctx, m.GetGate(), m.GetFloor())
	return &messages.RepairGateResponse{Before: done.Before, After: done.After, Removed: count(done.Removed), Cleared: count(done.Cleared)}, err
}

// Repair is that of gate.Gates. When the link breaks it may tell of a gate
// that it has repaired already.
func (g *Gates) Repair(ctx context.Context, name string, floor uint64) (gate.Repaired, error) {
	answer, err := operate(ctx, g.client, rpc.OperationsClient.RepairGate, &messages.RepairGateRequest{Gate: name, Floor: floor})
	if err != nil {
		return gate.Repaired{}, err
	}
	return gate.Repaired{
		Before: answer.GetBefore(), After: answer.GetAfter(), Removed: int(answer.GetRemoved()), Cleared: int(answer.GetCleared()),
	}, nil
}

func (o *operations) RemoveGate(ctx context.Context, m *messages.RemoveGateRequest) (*messages.RemoveGateResponse, error) {
	existed, err := o.system.Gates().Remove(ctx, m.GetGate(), m.GetForce())
	return &messages.RemoveGateResponse{Existed: existed}, err
}

// Remove is that of gate.Gates. When the link breaks it may report that there
// was no gate where it has removed one.
func (g *Gates) Remove(ctx context.Context, name string, force bool) (bool, error) {
	answer, err := operate(ctx, g.client, rpc.OperationsClient.RemoveGate, &messages.RemoveGateRequest{Gate: name, Force: force})
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
