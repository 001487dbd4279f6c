package remote

import (
	"context"
	"iter"

	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/wakebelltype"
)

var _ gate.Operator = (*Gates)(nil)

// List does what gate.Gates.List does. If the link breaks, it ends with
// wakebell.ErrUnavailable.
func (g *Gates) List(ctx context.Context, p wakebelltype.Page) iter.Seq2[wakebelltype.GateInfo, error] {
	request := &messages.ListGatesRequest{After: p.After, Limit: convert.Count(p.Limit)}
	return paging.Limited(p, wire.Each(list(ctx, g.client, rpc.OperationsClient.ListGates, request), func(m *messages.ListGatesResponse) wakebelltype.GateInfo {
		info := wire.GateOf(m.GetGate())
		info.Cursor = info.Name
		return info
	}))
}

// Show does what gate.Gates.Show does.
func (g *Gates) Show(ctx context.Context, name string) (wakebelltype.GateInfo, error) {
	answer, err := operate(ctx, g.client, rpc.OperationsClient.GetGate, &messages.GetGateRequest{Gate: name})
	if err != nil {
		return wakebelltype.GateInfo{}, err
	}
	return wire.GateOf(answer.GetGate()), nil
}

// ForceRelease does what gate.Gates.ForceRelease does. If the link breaks, it is
// repeated and may return false although it released the turn.
func (g *Gates) ForceRelease(ctx context.Context, name string, fence uint64) (bool, error) {
	answer, err := operate(ctx, g.client, rpc.OperationsClient.ReleaseGate, &messages.ReleaseGateRequest{Gate: name, Fence: fence})
	return answer.GetReleased(), err
}

// Repair does what gate.Gates.Repair does. If the link breaks, it is repeated and
// may return the result for a gate that it has already repaired.
func (g *Gates) Repair(ctx context.Context, name string, floor uint64) (wakebelltype.GateRepaired, error) {
	answer, err := operate(ctx, g.client, rpc.OperationsClient.RepairGate, &messages.RepairGateRequest{Gate: name, Floor: floor})
	if err != nil {
		return wakebelltype.GateRepaired{}, err
	}
	return wakebelltype.GateRepaired{
		Before: answer.GetBefore(), After: answer.GetAfter(), Removed: int(answer.GetRemoved()), Cleared: int(answer.GetCleared()),
	}, nil
}

// Remove does what gate.Gates.Remove does. If the link breaks, it is repeated and
// may return false although it removed the gate.
func (g *Gates) Remove(ctx context.Context, name string, force bool) (bool, error) {
	answer, err := operate(ctx, g.client, rpc.OperationsClient.RemoveGate, &messages.RemoveGateRequest{Gate: name, Force: force})
	return answer.GetExisted(), err
}
