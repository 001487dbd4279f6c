package remote

import (
	"context"
	"iter"

	"google.golang.org/grpc"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/queue"
)

var (
	queueOperations = []grpc.MethodDesc{
		operation(getQueueStats), operation(purgeQueue),
		operation(getQueueLetter), operation(redriveQueueLetter), operation(deleteQueueLetters),
	}
	queueStreams = []grpc.StreamDesc{listing(listQueue), listing(listQueueLetters)}
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

func getQueueStats(ctx context.Context, o *operations, m *messages.GetQueueStats) (*messages.QueueStats, error) {
	st, err := o.client().Queues().Stats(ctx, queueName(m))
	if err != nil {
		return nil, err
	}
	return &messages.QueueStats{
		Pending: st.Pending, Processing: st.Processing, Ended: st.Ended, Unleased: st.Unleased,
		Completed: st.Completed, Failed: st.Failed, Dead: st.Dead, Oldest: timestamp(st.Oldest), Now: timestamp(st.Now),
	}, nil
}

// Stats is that of queue.Client.
func (q *Queues) Stats(ctx context.Context, name queue.Keys) (queue.Stats, error) {
	m, err := operate[messages.QueueStats](ctx, q.client, &messages.GetQueueStats{Name: name.Name, Queue: queueMessage(name)})
	if err != nil {
		return queue.Stats{}, err
	}
	return queue.Stats{
		Pending: m.GetPending(), Processing: m.GetProcessing(), Ended: m.GetEnded(), Unleased: m.GetUnleased(),
		Completed: m.GetCompleted(), Failed: m.GetFailed(), Dead: m.GetDead(),
		Oldest: instantOf(m.GetOldest()), Now: instantOf(m.GetNow()),
	}, nil
}

func listQueue(ctx context.Context, o *operations, m *messages.ListQueue) iter.Seq2[*messages.QueuedMessage, error] {
	all := o.client().Queues().Messages(ctx, queueName(m), m.GetRunning())
	return each(all, func(q queue.Message) *messages.QueuedMessage {
		return &messages.QueuedMessage{
			Id: text(q.ID), Body: q.Payload, Fault: text(q.Fault), Running: q.Running,
			Deliveries: count(q.Deliveries), Deadline: timestamp(q.Deadline),
		}
	})
}

// Messages is that of queue.Client. When the link breaks it ends with
// wakebell.ErrUnavailable.
func (q *Queues) Messages(ctx context.Context, name queue.Keys, running bool) iter.Seq2[queue.Message, error] {
	request := &messages.ListQueue{Name: name.Name, Queue: queueMessage(name), Running: running}
	return each(list[messages.QueuedMessage](ctx, q.client, request), func(m *messages.QueuedMessage) queue.Message {
		return queue.Message{
			ID: m.GetId(), Payload: m.GetBody(), Fault: m.GetFault(), Running: m.GetRunning(),
			Deliveries: int(m.GetDeliveries()), Deadline: instantOf(m.GetDeadline()),
		}
	})
}

func purgeQueue(ctx context.Context, o *operations, m *messages.PurgeQueue) (answer *messages.Removed, err error) {
	answer = &messages.Removed{}
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
	return q.purge(ctx, &messages.PurgeQueue{Name: name.Name, Queue: queueMessage(name), Running: running})
}

// PurgeKept is that of queue.Client, and counts as Purge does.
func (q *Queues) PurgeKept(ctx context.Context, name queue.Keys) (int64, error) {
	return q.purge(ctx, &messages.PurgeQueue{Name: name.Name, Queue: queueMessage(name), Kept: true})
}

func (q *Queues) purge(ctx context.Context, request *messages.PurgeQueue) (int64, error) {
	answer, err := once[messages.Removed](ctx, q.client, request)
	return answer.GetCount(), err
}
