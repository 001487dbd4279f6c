package remote

import (
	"context"
	"iter"

	"google.golang.org/grpc"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
	"github.com/wakebell/wakebell/queue"
)

var (
	_ queue.Publisher = (*Queues)(nil)
	_ queue.Operator  = (*Queues)(nil)
)

// Queues publishes to the queues of a node, inspects them and redrives their dead
// letters.
type Queues struct{ client *Client }

// Queues returns the client of the node's queues.
func (c *Client) Queues() *Queues { return &Queues{c} }

// ofQueue is a request about a queue.
type ofQueue interface {
	GetName() string
	GetQueue() *messages.Queue
}

func queueName(m ofQueue) queue.Keys {
	return queue.Keys{
		Name: m.GetName(), Separator: m.GetQueue().GetSeparator(), DeadLetters: m.GetQueue().GetDeadLetters(),
	}
}

func queueMessage(name queue.Keys) *messages.Queue {
	return &messages.Queue{Separator: name.Separator, DeadLetters: name.DeadLetters}
}

func (o *operations) GetQueueStats(ctx context.Context, m *messages.GetQueueStatsRequest) (*messages.GetQueueStatsResponse, error) {
	st, err := o.client().Queues().Stats(ctx, queueName(m))
	if err != nil {
		return nil, err
	}
	return &messages.GetQueueStatsResponse{Stats: &messages.QueueStats{
		Pending: st.Pending, Processing: st.Processing, Ended: st.Ended, Unleased: st.Unleased,
		Completed: st.Completed, Failed: st.Failed, Dead: st.Dead, Oldest: timestamp(st.Oldest), Now: timestamp(st.Now),
	}}, nil
}

// Stats is that of queue.Client.
func (q *Queues) Stats(ctx context.Context, name queue.Keys) (queue.Stats, error) {
	answer, err := operate(ctx, q.client, rpc.OperationsClient.GetQueueStats, &messages.GetQueueStatsRequest{Name: name.Name, Queue: queueMessage(name)})
	if err != nil {
		return queue.Stats{}, err
	}
	m := answer.GetStats()
	return queue.Stats{
		Pending: m.GetPending(), Processing: m.GetProcessing(), Ended: m.GetEnded(), Unleased: m.GetUnleased(),
		Completed: m.GetCompleted(), Failed: m.GetFailed(), Dead: m.GetDead(),
		Oldest: instantOf(m.GetOldest()), Now: instantOf(m.GetNow()),
	}, nil
}

func (o *operations) ListQueueMessages(m *messages.ListQueueMessagesRequest, stream grpc.ServerStreamingServer[messages.ListQueueMessagesResponse]) error {
	return listing(o, m, stream, o.listQueueMessages)
}

func (o *operations) listQueueMessages(ctx context.Context, m *messages.ListQueueMessagesRequest) iter.Seq2[*messages.ListQueueMessagesResponse, error] {
	all := o.client().Queues().Messages(ctx, queueName(m), m.GetRunning())
	return each(all, func(q queue.Message) *messages.ListQueueMessagesResponse {
		return &messages.ListQueueMessagesResponse{Message: &messages.QueuedMessage{
			Id: text(q.ID), Body: q.Payload, Fault: text(q.Fault), Running: q.Running,
			Deliveries: count(q.Deliveries), Deadline: timestamp(q.Deadline),
		}}
	})
}

// Messages is that of queue.Client. When the link breaks it ends with
// wakebell.ErrUnavailable.
func (q *Queues) Messages(ctx context.Context, name queue.Keys, running bool) iter.Seq2[queue.Message, error] {
	request := &messages.ListQueueMessagesRequest{Name: name.Name, Queue: queueMessage(name), Running: running}
	return each(list(ctx, q.client, rpc.OperationsClient.ListQueueMessages, request), func(answer *messages.ListQueueMessagesResponse) queue.Message {
		m := answer.GetMessage()
		return queue.Message{
			ID: m.GetId(), Payload: m.GetBody(), Fault: m.GetFault(), Running: m.GetRunning(),
			Deliveries: int(m.GetDeliveries()), Deadline: instantOf(m.GetDeadline()),
		}
	})
}

func (o *operations) PurgeQueue(ctx context.Context, m *messages.PurgeQueueRequest) (answer *messages.PurgeQueueResponse, err error) {
	answer = &messages.PurgeQueueResponse{}
	if m.GetKept() {
		answer.Count, err = o.client().Queues().PurgeKept(ctx, queueName(m))
	} else {
		answer.Count, err = o.client().Queues().Purge(ctx, queueName(m), m.GetRunning())
	}
	return answer, err
}

// Purge is that of queue.Client. After an error it counts none of those it
// has deleted; when the link breaks it is wakebell.ErrUnavailable.
func (q *Queues) Purge(ctx context.Context, name queue.Keys, running bool) (int64, error) {
	return q.purge(ctx, &messages.PurgeQueueRequest{Name: name.Name, Queue: queueMessage(name), Running: running})
}

// PurgeKept is that of queue.Client, and counts as Purge does.
func (q *Queues) PurgeKept(ctx context.Context, name queue.Keys) (int64, error) {
	return q.purge(ctx, &messages.PurgeQueueRequest{Name: name.Name, Queue: queueMessage(name), Kept: true})
}

func (q *Queues) purge(ctx context.Context, request *messages.PurgeQueueRequest) (int64, error) {
	answer, err := once(ctx, q.client, rpc.OperationsClient.PurgeQueue, request)
	return answer.GetCount(), err
}
