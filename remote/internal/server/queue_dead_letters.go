package server

import (
	"context"
	"iter"

	"google.golang.org/grpc"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/wakebelltype"
)

func (o *operations) ListQueueDeadLetters(m *messages.ListQueueDeadLettersRequest, stream grpc.ServerStreamingServer[messages.ListQueueDeadLettersResponse]) error {
	return listing(o, m, stream, o.listQueueDeadLetters)
}

func (o *operations) listQueueDeadLetters(ctx context.Context, m *messages.ListQueueDeadLettersRequest) iter.Seq2[*messages.ListQueueDeadLettersResponse, error] {
	return wire.Each(o.client().Queues().DeadLetters(reading(ctx, m), wire.QueueName(m), wire.PageOf(m)), func(l wakebelltype.QueueDeadLetter) *messages.ListQueueDeadLettersResponse {
		return &messages.ListQueueDeadLettersResponse{DeadLetter: wire.QueueDeadLetterMessage(l)}
	})
}

func (o *operations) GetQueueDeadLetter(ctx context.Context, m *messages.GetQueueDeadLetterRequest) (*messages.GetQueueDeadLetterResponse, error) {
	l, err := o.client().Queues().DeadLetter(ctx, wire.QueueName(m), m.GetEntry())
	return &messages.GetQueueDeadLetterResponse{DeadLetter: wire.QueueDeadLetterMessage(l)}, err
}

func (o *operations) RedriveQueueDeadLetter(ctx context.Context, m *messages.RedriveQueueDeadLetterRequest) (*messages.RedriveQueueDeadLetterResponse, error) {
	outcome, id, err := o.client().Queues().RedriveDeadLetter(ctx, wire.QueueName(m),
		wakebelltype.QueueDeadLetter{Entry: m.GetEntry(), Payload: m.GetBody()},
		queue.RedriveOptions{
			Key:    func(wakebelltype.QueueDeadLetter) string { return m.GetKey() },
			Window: m.GetWindow().AsDuration(), FreeKeyOnFailure: m.GetFreesKeys(),
		})
	return &messages.RedriveQueueDeadLetterResponse{Outcome: messages.QueueRedriveOutcome(outcome), Id: text.Valid(id)}, err
}

func (o *operations) DeleteQueueDeadLetters(ctx context.Context, m *messages.DeleteQueueDeadLettersRequest) (*messages.DeleteQueueDeadLettersResponse, error) {
	if len(m.GetDeadLetters()) > wire.MaxDeadLetters {
		return nil, argument.Invalid("dead_letters", "%d, at most %d", len(m.GetDeadLetters()), wire.MaxDeadLetters)
	}
	deadLetters := make([]wakebelltype.QueueDeadLetter, len(m.GetDeadLetters()))
	for i, l := range m.GetDeadLetters() {
		deadLetters[i] = wire.QueueDeadLetterOf(l)
	}
	n, err := o.client().Queues().DeleteDeadLetters(ctx, wire.QueueName(m), deadLetters...)
	return &messages.DeleteQueueDeadLettersResponse{Count: int64(n)}, err
}
