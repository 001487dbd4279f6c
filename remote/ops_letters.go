package remote

import (
	"context"
	"iter"
	"math"

	"google.golang.org/grpc"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
)

func (o *operations) ListQueueDeadLetters(m *messages.ListQueueDeadLettersRequest, stream grpc.ServerStreamingServer[messages.ListQueueDeadLettersResponse]) error {
	return listing(o, m, stream, o.listQueueDeadLetters)
}

func (o *operations) listQueueDeadLetters(ctx context.Context, m *messages.ListQueueDeadLettersRequest) iter.Seq2[*messages.ListQueueDeadLettersResponse, error] {
	from := int64(min(m.GetFrom(), math.MaxInt64)) //nolint:gosec // bounded
	return each(o.client().QueueLetters(ctx, queueName(m), from), func(l wakebell.QueueLetter) *messages.ListQueueDeadLettersResponse {
		return &messages.ListQueueDeadLettersResponse{DeadLetter: letterMessage(l)}
	})
}

func (o *operations) GetQueueDeadLetter(ctx context.Context, m *messages.GetQueueDeadLetterRequest) (*messages.GetQueueDeadLetterResponse, error) {
	l, err := o.client().QueueLetter(ctx, queueName(m), m.GetEntry())
	return &messages.GetQueueDeadLetterResponse{DeadLetter: letterMessage(l)}, err
}

func (o *operations) RedriveQueueDeadLetter(ctx context.Context, m *messages.RedriveQueueDeadLetterRequest) (*messages.RedriveQueueDeadLetterResponse, error) {
	outcome, id, err := o.client().RedriveQueueLetter(ctx, queueName(m),
		wakebell.QueueLetter{Entry: m.GetEntry(), Payload: m.GetBody()},
		wakebell.QueueRedrive{
			Key:    func(wakebell.QueueLetter) string { return m.GetKey() },
			Window: m.GetWindow().AsDuration(), FreesKeys: m.GetFreesKeys(),
		})
	return &messages.RedriveQueueDeadLetterResponse{Outcome: messages.QueueRedriveOutcome(outcome), Id: text(id)}, err
}

func (o *operations) DeleteQueueDeadLetters(ctx context.Context, m *messages.DeleteQueueDeadLettersRequest) (*messages.DeleteQueueDeadLettersResponse, error) {
	if len(m.GetDeadLetters()) > maxLetters {
		return nil, invalid("dead_letters", "%d, at most %d", len(m.GetDeadLetters()), maxLetters)
	}
	letters := make([]wakebell.QueueLetter, len(m.GetDeadLetters()))
	for i, l := range m.GetDeadLetters() {
		letters[i] = letterOf(l)
	}
	n, err := o.client().DeleteQueueLetters(ctx, queueName(m), letters...)
	return &messages.DeleteQueueDeadLettersResponse{Count: int64(n)}, err
}
