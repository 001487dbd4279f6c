package server

import (
	"context"
	"iter"
	"math"

	"google.golang.org/grpc"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/wakebelltype"
)

func (o *operations) GetThroughput(ctx context.Context, m *messages.GetThroughputRequest) (*messages.GetThroughputResponse, error) {
	t, err := o.client().Throughput(ctx, m.GetTopic(), m.GetSince().AsDuration())
	if err != nil {
		return nil, err
	}
	return wire.ThroughputMessage(t), nil
}

func (o *operations) ListHistory(m *messages.ListHistoryRequest, stream grpc.ServerStreamingServer[messages.ListHistoryResponse]) error {
	return listing(o, m, stream, o.listHistory)
}

func (o *operations) listHistory(ctx context.Context, m *messages.ListHistoryRequest) iter.Seq2[*messages.ListHistoryResponse, error] {
	filter := wire.HistoryFilterOf(m.GetFilter())
	filter.Last = int(min(m.GetLast(), math.MaxInt32))
	return wire.Each(o.client().History(ctx, m.GetTopic(), filter, wire.PageOf(m)), func(a wakebelltype.Attempt) *messages.ListHistoryResponse {
		return &messages.ListHistoryResponse{Attempt: wire.AttemptMessage(a)}
	})
}
