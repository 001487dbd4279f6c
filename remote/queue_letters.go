package remote

import (
	"context"
	"iter"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

// QueueLetters is that of wakebell.Client. When the link breaks it ends with
// wakebell.ErrUnavailable.
func (c *Client) QueueLetters(ctx context.Context, name wakebell.QueueName, from int64) iter.Seq2[wakebell.QueueLetter, error] {
	if from < 0 {
		return func(yield func(wakebell.QueueLetter, error) bool) {
			yield(wakebell.QueueLetter{}, wire.Invalid("from", "%d is negative", from))
		}
	}
	request := &messages.ListQueueDeadLettersRequest{Name: name.Name, Queue: wire.QueueMessage(name), From: uint64(from)}
	return wire.Each(list(ctx, c, rpc.OperationsClient.ListQueueDeadLetters, request), func(m *messages.ListQueueDeadLettersResponse) wakebell.QueueLetter {
		return wire.LetterOf(m.GetDeadLetter())
	})
}

// QueueLetter is that of wakebell.Client.
func (c *Client) QueueLetter(ctx context.Context, name wakebell.QueueName, entry string) (wakebell.QueueLetter, error) {
	answer, err := operate(ctx, c, rpc.OperationsClient.GetQueueDeadLetter, &messages.GetQueueDeadLetterRequest{
		Name: name.Name, Queue: wire.QueueMessage(name), Entry: entry,
	})
	if err != nil {
		return wakebell.QueueLetter{}, err
	}
	return wire.LetterOf(answer.GetDeadLetter()), nil
}

// RedriveQueueLetter is that of wakebell.Client. When the link breaks it fails with
// wakebell.ErrUnavailable, and nobody knows.
func (c *Client) RedriveQueueLetter(ctx context.Context, name wakebell.QueueName, l wakebell.QueueLetter, o wakebell.QueueRedrive) (wakebell.LetterOutcome, string, error) {
	request := &messages.RedriveQueueDeadLetterRequest{
		Name: name.Name, Queue: wire.QueueMessage(name), Entry: l.Entry, Body: l.Payload, Window: wire.Span(o.Window), FreesKeys: o.FreesKeys,
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

// DeleteQueueLetters is that of wakebell.Client. After an error, as when the link
// breaks, it may not count all that it has deleted.
func (c *Client) DeleteQueueLetters(ctx context.Context, name wakebell.QueueName, letters ...wakebell.QueueLetter) (int, error) {
	for total := 0; ; {
		n := c.fittingLetters(letters)
		request := &messages.DeleteQueueDeadLettersRequest{Name: name.Name, Queue: wire.QueueMessage(name)}
		for _, l := range letters[:n] {
			request.DeadLetters = append(request.DeadLetters, &messages.QueueDeadLetter{Entry: wire.Text(l.Entry), Body: l.Payload})
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
	for size := wire.FrameOverhead; n < min(len(letters), wire.MaxLetters); n++ {
		size += len(letters[n].Payload) + len(letters[n].Entry) + wire.EnvelopeOverhead
		if n > 0 && size > min(wire.MaxLettersBytes, c.cfg.MaxMessage/2) {
			break
		}
	}
	return n
}
