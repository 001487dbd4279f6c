package remote

import (
	"context"
	"iter"
	"math"

	"google.golang.org/grpc"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
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

// QueueLetters is that of wakebell.Client. When the link breaks it ends with
// wakebell.ErrUnavailable.
func (c *Client) QueueLetters(ctx context.Context, name wakebell.QueueName, from int64) iter.Seq2[wakebell.QueueLetter, error] {
	if from < 0 {
		return func(yield func(wakebell.QueueLetter, error) bool) {
			yield(wakebell.QueueLetter{}, invalid("from", "%d is negative", from))
		}
	}
	request := &messages.ListQueueDeadLettersRequest{Name: name.Name, Queue: queueMessage(name), From: uint64(from)}
	return each(list(ctx, c, rpc.OperationsClient.ListQueueDeadLetters, request), func(m *messages.ListQueueDeadLettersResponse) wakebell.QueueLetter {
		return letterOf(m.GetDeadLetter())
	})
}

func (o *operations) GetQueueDeadLetter(ctx context.Context, m *messages.GetQueueDeadLetterRequest) (*messages.GetQueueDeadLetterResponse, error) {
	l, err := o.client().QueueLetter(ctx, queueName(m), m.GetEntry())
	return &messages.GetQueueDeadLetterResponse{DeadLetter: letterMessage(l)}, err
}

// QueueLetter is that of wakebell.Client.
func (c *Client) QueueLetter(ctx context.Context, name wakebell.QueueName, entry string) (wakebell.QueueLetter, error) {
	answer, err := operate(ctx, c, rpc.OperationsClient.GetQueueDeadLetter, &messages.GetQueueDeadLetterRequest{
		Name: name.Name, Queue: queueMessage(name), Entry: entry,
	})
	if err != nil {
		return wakebell.QueueLetter{}, err
	}
	return letterOf(answer.GetDeadLetter()), nil
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

// RedriveQueueLetter is that of wakebell.Client. When the link breaks it fails with
// wakebell.ErrUnavailable, and nobody knows.
func (c *Client) RedriveQueueLetter(ctx context.Context, name wakebell.QueueName, l wakebell.QueueLetter, o wakebell.QueueRedrive) (wakebell.LetterOutcome, string, error) {
	request := &messages.RedriveQueueDeadLetterRequest{
		Name: name.Name, Queue: queueMessage(name), Entry: l.Entry, Body: l.Payload, Window: span(o.Window), FreesKeys: o.FreesKeys,
	}
	if o.Key != nil {
		request.Key = o.Key(l)
	}
	answer, err := once(ctx, c, rpc.OperationsClient.RedriveQueueDeadLetter, request)
	if err != nil {
		return 0, "", err
	}
	return wakebell.LetterOutcome(answer.GetOutcome()), answer.GetId(), nil //nolint:gosec // numbered alike
}

// What goes in one DeleteQueueDeadLettersRequest, at the most; a single letter may be
// larger.
const maxLetters, maxLettersBytes = 1000, 1 << 20

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

// DeleteQueueLetters is that of wakebell.Client. After an error, as when the link
// breaks, it may not count all that it has deleted.
func (c *Client) DeleteQueueLetters(ctx context.Context, name wakebell.QueueName, letters ...wakebell.QueueLetter) (int, error) {
	for total := 0; ; {
		n := c.fittingLetters(letters)
		request := &messages.DeleteQueueDeadLettersRequest{Name: name.Name, Queue: queueMessage(name)}
		for _, l := range letters[:n] {
			request.DeadLetters = append(request.DeadLetters, &messages.QueueDeadLetter{Entry: text(l.Entry), Body: l.Payload})
		}
		answer, err := once(ctx, c, rpc.OperationsClient.DeleteQueueDeadLetters, request)
		total += int(answer.GetCount())
		letters = letters[n:]
		if err != nil || len(letters) == 0 {
			return total, err
		}
	}
}

// fittingLetters is how many of the first letters go in one request.
func (c *Client) fittingLetters(letters []wakebell.QueueLetter) (n int) {
	for size := frameOverhead; n < min(len(letters), maxLetters); n++ {
		size += len(letters[n].Payload) + len(letters[n].Entry) + envelopeOverhead
		if n > 0 && size > min(maxLettersBytes, c.cfg.MaxMessage/2) {
			break
		}
	}
	return n
}

func letterMessage(l wakebell.QueueLetter) *messages.QueueDeadLetter {
	return &messages.QueueDeadLetter{
		Entry: text(l.Entry), Body: l.Payload, Id: text(l.ID), Reason: text(l.Reason),
		Deliveries: count(l.Deliveries), At: timestamp(l.At),
	}
}

func letterOf(m *messages.QueueDeadLetter) wakebell.QueueLetter {
	return wakebell.QueueLetter{
		Entry: m.GetEntry(), Payload: m.GetBody(), ID: m.GetId(), Reason: m.GetReason(),
		Deliveries: int(m.GetDeliveries()), At: instantOf(m.GetAt()),
	}
}
