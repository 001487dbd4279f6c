package remote

import (
	"context"
	"iter"

	"google.golang.org/grpc"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
)

var _ wakebell.QueueOperator = (*Client)(nil)

// ofQueue is a request about a queue.
type ofQueue interface {
	GetName() string
	GetQueue() *messages.Queue
}

func queueName(m ofQueue) wakebell.QueueName {
	return wakebell.QueueName{
		Name: m.GetName(), Separator: m.GetQueue().GetSeparator(), DeadLetters: m.GetQueue().GetDeadLetters(),
	}
}

func queueMessage(name wakebell.QueueName) *messages.Queue {
	return &messages.Queue{Separator: name.Separator, DeadLetters: name.DeadLetters}
}

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

// QueueStats is that of wakebell.Client.
func (c *Client) QueueStats(ctx context.Context, name wakebell.QueueName) (wakebell.QueueStats, error) {
	answer, err := operate(ctx, c, rpc.OperationsClient.GetQueueStats, &messages.GetQueueStatsRequest{Name: name.Name, Queue: queueMessage(name)})
	if err != nil {
		return wakebell.QueueStats{}, err
	}
	m := answer.GetStats()
	return wakebell.QueueStats{
		Pending: m.GetPending(), Processing: m.GetProcessing(), Ended: m.GetEnded(), Unleased: m.GetUnleased(),
		Completed: m.GetCompleted(), Failed: m.GetFailed(), Dead: m.GetDead(),
		Oldest: instantOf(m.GetOldest()), Now: instantOf(m.GetNow()),
	}, nil
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

// QueueMessages is that of wakebell.Client. When the link breaks it ends with
// wakebell.ErrUnavailable.
func (c *Client) QueueMessages(ctx context.Context, name wakebell.QueueName, running bool) iter.Seq2[wakebell.QueueMessage, error] {
	request := &messages.ListQueueMessagesRequest{Name: name.Name, Queue: queueMessage(name), Running: running}
	return each(list(ctx, c, rpc.OperationsClient.ListQueueMessages, request), func(answer *messages.ListQueueMessagesResponse) wakebell.QueueMessage {
		m := answer.GetMessage()
		return wakebell.QueueMessage{
			ID: m.GetId(), Payload: m.GetBody(), Fault: m.GetFault(), Running: m.GetRunning(),
			Deliveries: int(m.GetDeliveries()), Deadline: instantOf(m.GetDeadline()),
		}
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

// PurgeQueue is that of wakebell.Client. After an error it counts none of those it
// has deleted; when the link breaks it is wakebell.ErrUnavailable.
func (c *Client) PurgeQueue(ctx context.Context, name wakebell.QueueName, running bool) (int64, error) {
	return c.purge(ctx, &messages.PurgeQueueRequest{Name: name.Name, Queue: queueMessage(name), Running: running})
}

// PurgeQueueKept is that of wakebell.Client, and counts as PurgeQueue does.
func (c *Client) PurgeQueueKept(ctx context.Context, name wakebell.QueueName) (int64, error) {
	return c.purge(ctx, &messages.PurgeQueueRequest{Name: name.Name, Queue: queueMessage(name), Kept: true})
}

func (c *Client) purge(ctx context.Context, request *messages.PurgeQueueRequest) (int64, error) {
	answer, err := once(ctx, c, rpc.OperationsClient.PurgeQueue, request)
	return answer.GetCount(), err
}
