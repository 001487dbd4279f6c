package remote

import (
	"context"
	"iter"

	"google.golang.org/grpc"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
)

func (o *operations) GetQueueStats(ctx context.Context, m *messages.GetQueueStatsRequest) (*messages.GetQueueStatsResponse, error) {
	st, err := o.client().QueueStats(ctx, queueName(m))
	if err != nil {
		return nil, err
	}
	return &messages.GetQueueStatsResponse{Stats: &messages.QueueStats{
		Pending: st.Pending, Processing: st.Processing, Ended: st.Ended, Unleased: st.Unleased,
		Completed: st.Completed, Failed: st.Failed, Dead: st.Dead, Oldest: timestamp(st.Oldest), Now: timestamp(st.Now),
	}}, nil
}

func (o *operations) ListQueueMessages(m *messages.ListQueueMessagesRequest, stream grpc.ServerStreamingServer[messages.ListQueueMessagesResponse]) error {
	return listing(o, m, stream, o.listQueueMessages)
}

func (o *operations) listQueueMessages(ctx context.Context, m *messages.ListQueueMessagesRequest) iter.Seq2[*messages.ListQueueMessagesResponse, error] {
	all := o.client().QueueMessages(ctx, queueName(m), m.GetRunning())
	return each(all, func(q wakebell.QueueMessage) *messages.ListQueueMessagesResponse {
		return &messages.ListQueueMessagesResponse{Message: &messages.QueuedMessage{
			Id: text(q.ID), Body: q.Payload, Fault: text(q.Fault), Running: q.Running,
			Deliveries: count(q.Deliveries), Deadline: timestamp(q.Deadline),
		}}
	})
}

func (o *operations) PurgeQueue(ctx context.Context, m *messages.PurgeQueueRequest) (answer *messages.PurgeQueueResponse, err error) {
	answer = &messages.PurgeQueueResponse{}
	if m.GetKept() {
		answer.Count, err = o.client().PurgeQueueKept(ctx, queueName(m))
	} else {
		answer.Count, err = o.client().PurgeQueue(ctx, queueName(m), m.GetRunning())
	}
	return answer, err
}
