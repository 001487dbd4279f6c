package server

import (
	"context"
	"iter"
	"math"

	"google.golang.org/grpc"

	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/wakebelltype"
)

func (o *operations) CountDue(ctx context.Context, m *messages.CountDueRequest) (*messages.CountDueResponse, error) {
	counts, err := o.client().CountDue(ctx, m.GetTopic(), convert.Time(m.GetFrom()), m.GetStep().AsDuration(), int(m.GetSteps()))
	return &messages.CountDueResponse{Counts: counts}, err
}

func (o *operations) GetThroughput(ctx context.Context, m *messages.GetThroughputRequest) (*messages.GetThroughputResponse, error) {
	t, err := o.client().Throughput(ctx, m.GetTopic(), m.GetSince().AsDuration())
	if err != nil {
		return nil, err
	}
	return wire.ThroughputMessage(t), nil
}

func (o *operations) GetQueueThroughput(ctx context.Context, m *messages.GetQueueThroughputRequest) (*messages.GetQueueThroughputResponse, error) {
	t, err := o.client().Queues().Throughput(ctx, wire.QueueName(m), m.GetSince().AsDuration())
	if err != nil {
		return nil, err
	}
	return &messages.GetQueueThroughputResponse{Throughput: wire.ThroughputMessage(t)}, nil
}

func (o *operations) ListHistory(m *messages.ListHistoryRequest, stream grpc.ServerStreamingServer[messages.ListHistoryResponse]) error {
	return listing(o, m, stream, o.listHistory)
}

func (o *operations) listHistory(ctx context.Context, m *messages.ListHistoryRequest) iter.Seq2[*messages.ListHistoryResponse, error] {
	filter := historyFilter(m)
	return wire.Each(o.client().History(ctx, m.GetTopic(), filter, wire.PageOf(m)), func(a wakebelltype.Attempt) *messages.ListHistoryResponse {
		return &messages.ListHistoryResponse{Attempt: wire.AttemptMessage(a)}
	})
}

func (o *operations) ListQueueHistory(m *messages.ListQueueHistoryRequest, stream grpc.ServerStreamingServer[messages.ListQueueHistoryResponse]) error {
	return listing(o, m, stream, o.listQueueHistory)
}

func (o *operations) listQueueHistory(ctx context.Context, m *messages.ListQueueHistoryRequest) iter.Seq2[*messages.ListQueueHistoryResponse, error] {
	all := o.client().Queues().History(ctx, wire.QueueName(m), historyFilter(m), wire.PageOf(m))
	return wire.Each(all, func(a wakebelltype.Attempt) *messages.ListQueueHistoryResponse {
		return &messages.ListQueueHistoryResponse{Attempt: wire.AttemptMessage(a)}
	})
}

// ofHistory is implemented by requests for attempts.
type ofHistory interface {
	GetFilter() *messages.HistoryFilter
	GetLast() uint32
}

func historyFilter(m ofHistory) wakebelltype.HistoryFilter {
	filter := wire.HistoryFilterOf(m.GetFilter())
	filter.Last = int(min(m.GetLast(), math.MaxInt32))
	return filter
}
