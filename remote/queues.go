package remote

import (
	"context"
	"iter"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/internal/opened"
	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/wakebelltype"
)

var (
	_ queue.Publisher = (*Queues)(nil)
	_ queue.Operator  = (*Queues)(nil)
)

// Queues publishes to the queues of a node, inspects them, and redrives and deletes
// their dead letters. Client.Subscribe handles their messages.
type Queues struct{ client *Client }

// Queues returns the queues of the node.
func (c *Client) Queues() *Queues { return &Queues{c} }

// List does what queue.Client.List does, for the queues that the client may see. If the
// link breaks, it ends with wakebell.ErrUnavailable.
func (q *Queues) List(ctx context.Context, p wakebelltype.Page) iter.Seq2[wakebelltype.QueueName, error] {
	request := &messages.ListQueuesRequest{After: p.After, Limit: convert.Count(p.Limit)}
	return paging.Limited(p, wire.Each(list(ctx, q.client, rpc.OperationsClient.ListQueues, request), func(m *messages.ListQueuesResponse) wakebelltype.QueueName {
		return wakebelltype.QueueName{Keys: wire.QueueName(m), Cursor: m.GetCursor()}
	}))
}

// Stats does what queue.Client.Stats does.
func (q *Queues) Stats(ctx context.Context, name wakebelltype.QueueKeys) (wakebelltype.QueueStats, error) {
	answer, err := operate(ctx, q.client, rpc.OperationsClient.GetQueueStats, &messages.GetQueueStatsRequest{
		Name: name.Name, Queue: wire.QueueMessage(name), ByMasters: opened.IsByMasters(ctx),
	})
	if err != nil {
		return wakebelltype.QueueStats{}, err
	}
	m := answer.GetStats()
	return wakebelltype.QueueStats{
		Pending: m.GetPending(), Processing: m.GetProcessing(), Ended: m.GetEnded(), Unleased: m.GetUnleased(),
		Completed: m.GetCompleted(), Failed: m.GetFailed(), Dead: m.GetDead(),
		Oldest: convert.Time(m.GetOldest()), Now: convert.Time(m.GetNow()),
	}, nil
}

// Messages does what queue.Client.Messages does. If the link breaks, it ends with
// wakebell.ErrUnavailable.
func (q *Queues) Messages(ctx context.Context, name wakebelltype.QueueKeys, running bool, p wakebelltype.Page) iter.Seq2[wakebelltype.QueueMessage, error] {
	request := &messages.ListQueueMessagesRequest{
		Name: name.Name, Queue: wire.QueueMessage(name), Running: running, After: p.After, Limit: convert.Count(p.Limit),
	}
	return paging.Limited(p, wire.Each(list(ctx, q.client, rpc.OperationsClient.ListQueueMessages, request), func(answer *messages.ListQueueMessagesResponse) wakebelltype.QueueMessage {
		m := answer.GetMessage()
		return wakebelltype.QueueMessage{
			ID: m.GetId(), Payload: m.GetBody(), Fault: m.GetFault(), Running: m.GetRunning(),
			Deliveries: int(m.GetDeliveries()), Deadline: convert.Time(m.GetDeadline()), Cursor: m.GetCursor(),
		}
	}))
}

// Throughput does what queue.Client.Throughput does.
func (q *Queues) Throughput(ctx context.Context, name wakebelltype.QueueKeys, since time.Duration) (wakebelltype.Throughput, error) {
	answer, err := operate(ctx, q.client, rpc.OperationsClient.GetQueueThroughput, &messages.GetQueueThroughputRequest{
		Name: name.Name, Queue: wire.QueueMessage(name), Since: durationpb.New(since),
	})
	if err != nil {
		return wakebelltype.Throughput{}, err
	}
	return wire.ThroughputOf(answer.GetThroughput()), nil
}

// History does what queue.Client.History does. If the link breaks, it ends with
// wakebell.ErrUnavailable.
func (q *Queues) History(ctx context.Context, name wakebelltype.QueueKeys, f wakebelltype.HistoryFilter, p wakebelltype.Page) iter.Seq2[wakebelltype.Attempt, error] {
	if f.Last < 0 {
		return func(yield func(wakebelltype.Attempt, error) bool) {
			yield(wakebelltype.Attempt{}, argument.Invalid("last", "%d, want 1 to 1000", f.Last))
		}
	}
	attempts := list(ctx, q.client, rpc.OperationsClient.ListQueueHistory, &messages.ListQueueHistoryRequest{
		Name: name.Name, Queue: wire.QueueMessage(name), Filter: wire.HistoryFilterMessage(f),
		Last: convert.Count(f.Last), After: p.After, Limit: convert.Count(p.Limit),
	})
	return paging.Limited(p, wire.Each(attempts, func(m *messages.ListQueueHistoryResponse) wakebelltype.Attempt {
		return wire.AttemptOf(m.GetAttempt())
	}))
}

// Remove does what queue.Client.Remove does. If the link breaks, it is repeated and may
// report that the queue did not exist.
func (q *Queues) Remove(ctx context.Context, name wakebelltype.QueueKeys) (wakebelltype.QueueRemoval, error) {
	answer, err := operate(ctx, q.client, rpc.OperationsClient.RemoveQueue, &messages.RemoveQueueRequest{Name: name.Name, Queue: wire.QueueMessage(name)})
	return wakebelltype.QueueRemoval{Existed: answer.GetExisted(), Use: answer.GetUse()}, err
}

// Purge does what queue.Client.Purge does, but returns 0 with an error. If the link
// breaks, it returns wakebell.ErrUnavailable, and messages may have been deleted.
func (q *Queues) Purge(ctx context.Context, name wakebelltype.QueueKeys, running bool) (int64, error) {
	return q.purge(ctx, &messages.PurgeQueueRequest{Name: name.Name, Queue: wire.QueueMessage(name), Running: running})
}

// PurgeKept does what queue.Client.PurgeKept does. Its count and errors are as in
// Purge.
func (q *Queues) PurgeKept(ctx context.Context, name wakebelltype.QueueKeys) (int64, error) {
	return q.purge(ctx, &messages.PurgeQueueRequest{Name: name.Name, Queue: wire.QueueMessage(name), Kept: true})
}

func (q *Queues) purge(ctx context.Context, request *messages.PurgeQueueRequest) (int64, error) {
	answer, err := once(ctx, q.client, rpc.OperationsClient.PurgeQueue, request)
	return answer.GetCount(), err
}
