package remote

import (
	"context"
	"iter"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

var _ wakebell.QueueOperator = (*Client)(nil)

// QueueStats is that of wakebell.Client.
func (c *Client) QueueStats(ctx context.Context, name wakebell.QueueName) (wakebell.QueueStats, error) {
	answer, err := operate(ctx, c, rpc.OperationsClient.GetQueueStats, &messages.GetQueueStatsRequest{Name: name.Name, Queue: wire.QueueMessage(name)})
	if err != nil {
		return wakebell.QueueStats{}, err
	}
	m := answer.GetStats()
	return wakebell.QueueStats{
		Pending: m.GetPending(), Processing: m.GetProcessing(), Ended: m.GetEnded(), Unleased: m.GetUnleased(),
		Completed: m.GetCompleted(), Failed: m.GetFailed(), Dead: m.GetDead(),
		Oldest: wire.InstantOf(m.GetOldest()), Now: wire.InstantOf(m.GetNow()),
	}, nil
}

// QueueMessages is that of wakebell.Client. When the link breaks it ends with
// wakebell.ErrUnavailable.
func (c *Client) QueueMessages(ctx context.Context, name wakebell.QueueName, running bool) iter.Seq2[wakebell.QueueMessage, error] {
	request := &messages.ListQueueMessagesRequest{Name: name.Name, Queue: wire.QueueMessage(name), Running: running}
	return wire.Each(list(ctx, c, rpc.OperationsClient.ListQueueMessages, request), func(answer *messages.ListQueueMessagesResponse) wakebell.QueueMessage {
		m := answer.GetMessage()
		return wakebell.QueueMessage{
			ID: m.GetId(), Payload: m.GetBody(), Fault: m.GetFault(), Running: m.GetRunning(),
			Deliveries: int(m.GetDeliveries()), Deadline: wire.InstantOf(m.GetDeadline()),
		}
	})
}

// PurgeQueue is that of wakebell.Client. After an error it counts none of those it
// has deleted; when the link breaks it is wakebell.ErrUnavailable.
func (c *Client) PurgeQueue(ctx context.Context, name wakebell.QueueName, running bool) (int64, error) {
	return c.purge(ctx, &messages.PurgeQueueRequest{Name: name.Name, Queue: wire.QueueMessage(name), Running: running})
}

// PurgeQueueKept is that of wakebell.Client, and counts as PurgeQueue does.
func (c *Client) PurgeQueueKept(ctx context.Context, name wakebell.QueueName) (int64, error) {
	return c.purge(ctx, &messages.PurgeQueueRequest{Name: name.Name, Queue: wire.QueueMessage(name), Kept: true})
}

func (c *Client) purge(ctx context.Context, request *messages.PurgeQueueRequest) (int64, error) {
	answer, err := once(ctx, c, rpc.OperationsClient.PurgeQueue, request)
	return answer.GetCount(), err
}
