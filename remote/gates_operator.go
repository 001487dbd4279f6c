package remote

import (
	"context"
	"iter"

	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

var _ gate.Operator = (*Gates)(nil)

// List is that of gate.Gates. When the link breaks it ends with
// wakebell.ErrUnavailable.
func (g *Gates) List(ctx context.Context) iter.Seq2[gate.Info, error] {
	return wire.Each(list(ctx, g.client, rpc.OperationsClient.ListGates, &messages.ListGatesRequest{}), func(m *messages.ListGatesResponse) gate.Info {
		return wire.GateOf(m.GetGate())
	})
}

// Show is that of gate.Gates.
func (g *Gates) Show(ctx context.Context, name string) (gate.Info, error) {
	answer, err := operate(ctx, g.client, rpc.OperationsClient.GetGate, &messages.GetGateRequest{Gate: name})
	if err != nil {
		return gate.Info{}, err
	}
	return wire.GateOf(answer.GetGate()), nil
}

// ForceRelease is that of gate.Gates. When the link breaks it may report that
// the token did not have the turn that it has taken away.
func (g *Gates) ForceRelease(ctx context.Context, name string, fence uint64) (bool, error) {
	answer, err := operate(ctx, g.client, rpc.OperationsClient.ReleaseGate, &messages.ReleaseGateRequest{Gate: name, Fence: fence})
	return answer.GetReleased(), err
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

// Remove is that of gate.Gates. When the link breaks it may report that there
// was no gate where it has removed one.
func (g *Gates) Remove(ctx context.Context, name string, force bool) (bool, error) {
	answer, err := operate(ctx, g.client, rpc.OperationsClient.RemoveGate, &messages.RemoveGateRequest{Gate: name, Force: force})
	return answer.GetExisted(), err
}
