package remote

import (
	"context"
	"iter"

	"google.golang.org/grpc"

	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/messages"
)

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

func (o *operations) GetGate(ctx context.Context, m *messages.GetGateRequest) (*messages.GetGateResponse, error) {
	info, err := o.system.Gates().Show(ctx, m.GetGate())
	return &messages.GetGateResponse{Gate: gateMessage(info)}, err
}

func (o *operations) ReleaseGate(ctx context.Context, m *messages.ReleaseGateRequest) (*messages.ReleaseGateResponse, error) {
	released, err := o.system.Gates().ForceRelease(ctx, m.GetGate(), m.GetFence())
	return &messages.ReleaseGateResponse{Released: released}, err
}

func (o *operations) RepairGate(ctx context.Context, m *messages.RepairGateRequest) (*messages.RepairGateResponse, error) {
	done, err := o.system.Gates().Repair(ctx, m.GetGate(), m.GetFloor())
	return &messages.RepairGateResponse{Before: done.Before, After: done.After, Removed: count(done.Removed), Cleared: count(done.Cleared)}, err
}

func (o *operations) RemoveGate(ctx context.Context, m *messages.RemoveGateRequest) (*messages.RemoveGateResponse, error) {
	existed, err := o.system.Gates().Remove(ctx, m.GetGate(), m.GetForce())
	return &messages.RemoveGateResponse{Existed: existed}, err
}
