package server

import (
	"context"
	"iter"

	"google.golang.org/grpc"

	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/internal/opened"
	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/remote/rights"
	"github.com/wakebell/wakebell/wakebelltype"
)

func (o *operations) ListQueues(m *messages.ListQueuesRequest, stream grpc.ServerStreamingServer[messages.ListQueuesResponse]) error {
	return listing(o, m, stream, o.listQueues)
}

func (o *operations) listQueues(ctx context.Context, m *messages.ListQueuesRequest) iter.Seq2[*messages.ListQueuesResponse, error] {
	page := wire.PageOf(m)
	return wire.Each(paging.Limited(page, func(yield func(wakebelltype.QueueName, error) bool) {
		for q, err := range o.client().Queues().List(ctx, wakebelltype.Page{After: page.After}) {
			if (err != nil || o.Sees(ctx, rights.KindQueue, q.Keys.Name)) && !yield(q, err) {
				return
			}
		}
	}), func(q wakebelltype.QueueName) *messages.ListQueuesResponse {
		return &messages.ListQueuesResponse{Name: text.Valid(q.Keys.Name), Queue: wire.QueueMessage(q.Keys), Cursor: text.Valid(q.Cursor)}
	})
}

func (o *operations) GetQueueStats(ctx context.Context, m *messages.GetQueueStatsRequest) (*messages.GetQueueStatsResponse, error) {
	st, err := o.client().Queues().Stats(reading(ctx, m), wire.QueueName(m))
	if err != nil {
		return nil, err
	}
	return &messages.GetQueueStatsResponse{Stats: &messages.QueueStats{
		Pending: st.Pending, Processing: st.Processing, Ended: st.Ended, Unleased: st.Unleased,
		Completed: st.Completed, Failed: st.Failed, Dead: st.Dead, Oldest: convert.Timestamp(st.Oldest), Now: convert.Timestamp(st.Now),
	}}, nil
}

// reading returns a context for a request that may ask for what the masters have.
func reading(ctx context.Context, m interface{ GetByMasters() bool }) context.Context {
	if m.GetByMasters() {
		return opened.ByMasters(ctx)
	}
	return ctx
}

func (o *operations) ListQueueMessages(m *messages.ListQueueMessagesRequest, stream grpc.ServerStreamingServer[messages.ListQueueMessagesResponse]) error {
	return listing(o, m, stream, o.listQueueMessages)
}

func (o *operations) listQueueMessages(ctx context.Context, m *messages.ListQueueMessagesRequest) iter.Seq2[*messages.ListQueueMessagesResponse, error] {
	all := o.client().Queues().Messages(ctx, wire.QueueName(m), m.GetRunning(), wire.PageOf(m))
	return wire.Each(all, func(q wakebelltype.QueueMessage) *messages.ListQueueMessagesResponse {
		return &messages.ListQueueMessagesResponse{Message: &messages.QueuedMessage{
			Id: text.Valid(q.ID), Body: q.Payload, Fault: text.Valid(q.Fault), Running: q.Running,
			Deliveries: convert.Count(q.Deliveries), Deadline: convert.Timestamp(q.Deadline), Cursor: q.Cursor,
		}}
	})
}

func (o *operations) RemoveQueue(ctx context.Context, m *messages.RemoveQueueRequest) (*messages.RemoveQueueResponse, error) {
	r, err := o.client().Queues().Remove(ctx, wire.QueueName(m))
	return &messages.RemoveQueueResponse{Existed: r.Existed, Use: text.Valid(r.Use)}, err
}

func (o *operations) PurgeQueue(ctx context.Context, m *messages.PurgeQueueRequest) (answer *messages.PurgeQueueResponse, err error) {
	answer = &messages.PurgeQueueResponse{}
	if m.GetKept() {
		answer.Count, err = o.client().Queues().PurgeKept(ctx, wire.QueueName(m))
	} else {
		answer.Count, err = o.client().Queues().Purge(ctx, wire.QueueName(m), m.GetRunning())
	}
	return answer, err
}
