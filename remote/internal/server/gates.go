package server

import (
	"context"
	"iter"

	"google.golang.org/grpc"

	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/remote/rights"
	"github.com/wakebell/wakebell/wakebelltype"
)

func (o *operations) ListGates(m *messages.ListGatesRequest, stream grpc.ServerStreamingServer[messages.ListGatesResponse]) error {
	return listing(o, m, stream, o.listGates)
}

func (o *operations) listGates(ctx context.Context, m *messages.ListGatesRequest) iter.Seq2[*messages.ListGatesResponse, error] {
	page := wire.PageOf(m)
	return wire.Each(paging.Limited(page, func(yield func(wakebelltype.GateInfo, error) bool) {
		for gate, err := range o.system.Gates().List(ctx, wakebelltype.Page{After: page.After}) {
			if (err != nil || o.Sees(ctx, rights.KindGate, gate.Name)) && !yield(gate, err) {
				return
			}
		}
	}), func(g wakebelltype.GateInfo) *messages.ListGatesResponse {
		return &messages.ListGatesResponse{Gate: wire.GateMessage(g)}
	})
}

func (o *operations) GetGate(ctx context.Context, m *messages.GetGateRequest) (*messages.GetGateResponse, error) {
	info, err := o.system.Gates().Show(ctx, m.GetGate())
	return &messages.GetGateResponse{Gate: wire.GateMessage(info)}, err
}

func (o *operations) ReleaseGate(ctx context.Context, m *messages.ReleaseGateRequest) (*messages.ReleaseGateResponse, error) {
	released, err := o.system.Gates().ForceRelease(ctx, m.GetGate(), m.GetFence())
	return &messages.ReleaseGateResponse{Released: released}, err
}

func (o *operations) RepairGate(ctx context.Context, m *messages.RepairGateRequest) (*messages.RepairGateResponse, error) {
	done, err := o.system.Gates().Repair(ctx, m.GetGate(), m.GetFloor())
	return &messages.RepairGateResponse{Before: done.Before, After: done.After, Removed: convert.Count(done.Removed), Cleared: convert.Count(done.Cleared)}, err
}

func (o *operations) RemoveGate(ctx context.Context, m *messages.RemoveGateRequest) (*messages.RemoveGateResponse, error) {
	existed, err := o.system.Gates().Remove(ctx, m.GetGate(), m.GetForce())
	return &messages.RemoveGateResponse{Existed: existed}, err
}
