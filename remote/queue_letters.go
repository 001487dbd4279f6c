package remote

import (
	"context"
	"iter"
	"math"

	"google.golang.org/grpc"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
	"github.com/wakebell/wakebell/queue"
)

func (o *operations) ListQueueDeadLetters(m *messages.ListQueueDeadLettersRequest, stream grpc.ServerStreamingServer[messages.ListQueueDeadLettersResponse]) error {
	return listing(o, m, stream, o.listQueueDeadLetters)
}

func (o *operations) listQueueDeadLetters(ctx context.Context, m *messages.ListQueueDeadLettersRequest) iter.Seq2[*messages.ListQueueDeadLettersResponse, error] {
	from := int64(min(m.GetFrom(), math.MaxInt64)) //nolint:gosec // bounded
	return each(o.client().Queues().DeadLetters(ctx, queueName(m), from), func(l queue.DeadLetter) *messages.ListQueueDeadLettersResponse {
		return &messages.ListQueueDeadLettersResponse{DeadLetter: letterMessage(l)}
	})
}

// DeadLetters is that of queue.Client. When the link breaks it ends with
// wakebell.ErrUnavailable.
func (q *Queues) DeadLetters(ctx context.Context, name queue.Keys, from int64) iter.Seq2[queue.DeadLetter, error] {
	if from < 0 {
		return func(yield func(queue.DeadLetter, error) bool) {
			yield(queue.DeadLetter{}, invalid("from", "%d is negative", from))
		}
	}
	request := &messages.ListQueueDeadLettersRequest{Name: name.Name, Queue: queueMessage(name), From: uint64(from)}
	return each(list(ctx, q.client, rpc.OperationsClient.ListQueueDeadLetters, request), func(m *messages.ListQueueDeadLettersResponse) queue.DeadLetter {
		return letterOf(m.GetDeadLetter())
	})
}

func (o *operations) GetQueueDeadLetter(ctx context.Context, m *messages.GetQueueDeadLetterRequest) (*messages.GetQueueDeadLetterResponse, error) {
	l, err := o.client().Queues().DeadLetter(ctx, queueName(m), m.GetEntry())
	return &messages.GetQueueDeadLetterResponse{DeadLetter: letterMessage(l)}, err
}

// DeadLetter is that of queue.Client.
func (q *Queues) DeadLetter(ctx context.Context, name queue.Keys, entry string) (queue.DeadLetter, error) {
	answer, err := operate(ctx, q.client, rpc.OperationsClient.GetQueueDeadLetter, &messages.GetQueueDeadLetterRequest{
		Name: name.Name, Queue: queueMessage(name), Entry: entry,
	})
	if err != nil {
		return queue.DeadLetter{}, err
	}
	return letterOf(answer.GetDeadLetter()), nil
}

func (o *operations) RedriveQueueDeadLetter(ctx context.Context, m *messages.RedriveQueueDeadLetterRequest) (*messages.RedriveQueueDeadLetterResponse, error) {
	outcome, id, err := o.client().Queues().RedriveDeadLetter(ctx, queueName(m),
		queue.DeadLetter{Entry: m.GetEntry(), Payload: m.GetBody()},
		queue.RedriveOptions{
			Key:    func(queue.DeadLetter) string { return m.GetKey() },
			Window: m.GetWindow().AsDuration(), FreeKeyOnFailure: m.GetFreesKeys(),
		})
	return &messages.RedriveQueueDeadLetterResponse{Outcome: messages.QueueRedriveOutcome(outcome), Id: text(id)}, err
}

// RedriveDeadLetter is that of queue.Client. When the link breaks it fails with
// wakebell.ErrUnavailable, and nobody knows.
func (q *Queues) RedriveDeadLetter(ctx context.Context, name queue.Keys, l queue.DeadLetter, o queue.RedriveOptions) (queue.RedriveOutcome, string, error) {
	request := &messages.RedriveQueueDeadLetterRequest{
		Name: name.Name, Queue: queueMessage(name), Entry: l.Entry, Body: l.Payload, Window: span(o.Window), FreesKeys: o.FreeKeyOnFailure,
	}
	if o.Key != nil {
		request.Key = o.Key(l)
	}
	answer, err := once(ctx, q.client, rpc.OperationsClient.RedriveQueueDeadLetter, request)
	if err != nil {
		return 0, "", err
	}
	return queue.RedriveOutcome(answer.GetOutcome()), answer.GetId(), nil //nolint:gosec // numbered alike
}

// What goes in one DeleteQueueDeadLettersRequest, at the most; a single letter may be
// larger.
const maxLetters, maxLettersBytes = 1000, 1 << 20

func (o *operations) DeleteQueueDeadLetters(ctx context.Context, m *messages.DeleteQueueDeadLettersRequest) (*messages.DeleteQueueDeadLettersResponse, error) {
	if len(m.GetDeadLetters()) > maxLetters {
		return nil, invalid("dead_letters", "%d, at most %d", len(m.GetDeadLetters()), maxLetters)
	}
	letters := make([]queue.DeadLetter, len(m.GetDeadLetters()))
	for i, l := range m.GetDeadLetters() {
		letters[i] = letterOf(l)
	}
	n, err := o.client().Queues().DeleteDeadLetters(ctx, queueName(m), letters...)
	return &messages.DeleteQueueDeadLettersResponse{Count: int64(n)}, err
}

// DeleteDeadLetters is that of queue.Client. After an error, as when the link
// breaks, it may not count all that it has deleted.
func (q *Queues) DeleteDeadLetters(ctx context.Context, name queue.Keys, letters ...queue.DeadLetter) (int, error) {
	for total := 0; ; {
		n := q.fittingLetters(letters)
		request := &messages.DeleteQueueDeadLettersRequest{Name: name.Name, Queue: queueMessage(name)}
		for _, l := range letters[:n] {
			request.DeadLetters = append(request.DeadLetters, &messages.QueueDeadLetter{Entry: text(l.Entry), Body: l.Payload})
		}
		answer, err := once(ctx, q.client, rpc.OperationsClient.DeleteQueueDeadLetters, request)
		total += int(answer.GetCount())
		letters = letters[n:]
		if err != nil || len(letters) == 0 {
			return total, err
		}
	}
}

// fittingLetters is how many of the first letters go in one request.
func (q *Queues) fittingLetters(letters []queue.DeadLetter) (n int) {
	for size := frameOverhead; n < min(len(letters), maxLetters); n++ {
		size += len(letters[n].Payload) + len(letters[n].Entry) + envelopeOverhead
		if n > 0 && size > min(maxLettersBytes, q.client.cfg.MaxMessage/2) {
			break
		}
	}
	return n
}

func letterMessage(l queue.DeadLetter) *messages.QueueDeadLetter {
	return &messages.QueueDeadLetter{
		Entry: text(l.Entry), Body: l.Payload, Id: text(l.ID), Reason: text(l.Reason),
		Deliveries: count(l.Deliveries), At: timestamp(l.At),
	}
}

func letterOf(m *messages.QueueDeadLetter) queue.DeadLetter {
	return queue.DeadLetter{
		Entry: m.GetEntry(), Payload: m.GetBody(), ID: m.GetId(), Reason: m.GetReason(),
		Deliveries: int(m.GetDeliveries()), At: instantOf(m.GetAt()),
	}
}
