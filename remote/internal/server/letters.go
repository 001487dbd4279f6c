package server

import (
	"context"
	"iter"
	"math"

	"google.golang.org/grpc"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

func (o *operations) ListQueueDeadLetters(m *messages.ListQueueDeadLettersRequest, stream grpc.ServerStreamingServer[messages.ListQueueDeadLettersResponse]) error {
	return listing(o, m, stream, o.listQueueDeadLetters)
}

func (o *operations) listQueueDeadLetters(ctx context.Context, m *messages.ListQueueDeadLettersRequest) iter.Seq2[*messages.ListQueueDeadLettersResponse, error] {
	from := int64(min(m.GetFrom(), math.MaxInt64)) //nolint:gosec // bounded
	return wire.Each(o.client().QueueLetters(ctx, wire.QueueName(m), from), func(l wakebell.QueueLetter) *messages.ListQueueDeadLettersResponse {
		return &messages.ListQueueDeadLettersResponse{DeadLetter: wire.LetterMessage(l)}
	})
}

func (o *operations) GetQueueDeadLetter(ctx context.Context, m *messages.GetQueueDeadLetterRequest) (*messages.GetQueueDeadLetterResponse, error) {
	l, err := o.client().QueueLetter(ctx, wire.QueueName(m), m.GetEntry())
	return &messages.GetQueueDeadLetterResponse{DeadLetter: wire.LetterMessage(l)}, err
}

func (o *operations) RedriveQueueDeadLetter(ctx context.Context, m *messages.RedriveQueueDeadLetterRequest) (*messages.RedriveQueueDeadLetterResponse, error) {
	outcome, id, err := o.client().RedriveQueueLetter(ctx, wire.QueueName(m),
		wakebell.QueueLetter{Entry: m.GetEntry(), Payload: m.GetBody()},
		wakebell.QueueRedrive{
			Key:    func(wakebell.QueueLetter) string { return m.GetKey() },
			Window: m.GetWindow().AsDuration(), FreesKeys: m.GetFreesKeys(),
		})
	return &messages.RedriveQueueDeadLetterResponse{Outcome: messages.QueueRedriveOutcome(outcome), Id: wire.Text(id)}, err
}

func (o *operations) DeleteQueueDeadLetters(ctx context.Context, m *messages.DeleteQueueDeadLettersRequest) (*messages.DeleteQueueDeadLettersResponse, error) {
	if len(m.GetDeadLetters()) > wire.MaxLetters {
		return nil, wire.Invalid("dead_letters", "%d, at most %d", len(m.GetDeadLetters()), wire.MaxLetters)
	}
	letters := make([]wakebell.QueueLetter, len(m.GetDeadLetters()))
	for i, l := range m.GetDeadLetters() {
		letters[i] = wire.LetterOf(l)
	}
	n, err := o.client().DeleteQueueLetters(ctx, wire.QueueName(m), letters...)
	return &messages.DeleteQueueDeadLettersResponse{Count: int64(n)}, err
}
