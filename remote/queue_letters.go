package remote

import (
	"context"
	"iter"
	"math"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
)

func listQueueLetters(ctx context.Context, o *operations, m *messages.ListQueueLetters) iter.Seq2[*messages.QueueLetter, error] {
	from := int64(min(m.GetFrom(), math.MaxInt64)) //nolint:gosec // bounded
	return each(o.client().QueueLetters(ctx, queueName(m), from), letterMessage)
}

// QueueLetters is that of wakebell.Client. When the link breaks it ends with
// wakebell.ErrUnavailable.
func (c *Client) QueueLetters(ctx context.Context, name wakebell.QueueName, from int64) iter.Seq2[wakebell.QueueLetter, error] {
	if from < 0 {
		return func(yield func(wakebell.QueueLetter, error) bool) {
			yield(wakebell.QueueLetter{}, invalid("from", "%d is negative", from))
		}
	}
	request := &messages.ListQueueLetters{Name: name.Name, Queue: queueMessage(name), From: uint64(from)}
	return each(list[messages.QueueLetter](ctx, c, request), letterOf)
}

func getQueueLetter(ctx context.Context, o *operations, m *messages.GetQueueLetter) (*messages.QueueLetter, error) {
	l, err := o.client().QueueLetter(ctx, queueName(m), m.GetEntry())
	return letterMessage(l), err
}

// QueueLetter is that of wakebell.Client.
func (c *Client) QueueLetter(ctx context.Context, name wakebell.QueueName, entry string) (wakebell.QueueLetter, error) {
	answer, err := operate[messages.QueueLetter](ctx, c, &messages.GetQueueLetter{
		Name: name.Name, Queue: queueMessage(name), Entry: entry,
	})
	if err != nil {
		return wakebell.QueueLetter{}, err
	}
	return letterOf(answer), nil
}

func redriveQueueLetter(ctx context.Context, o *operations, m *messages.RedriveQueueLetter) (*messages.QueueLetterRedriven, error) {
	outcome, id, err := o.client().RedriveQueueLetter(ctx, queueName(m),
		wakebell.QueueLetter{Entry: m.GetEntry(), Payload: m.GetBody()},
		wakebell.QueueRedrive{
			Key:    func(wakebell.QueueLetter) string { return m.GetKey() },
			Window: m.GetWindow().AsDuration(), FreesKeys: m.GetFreesKeys(),
		})
	return &messages.QueueLetterRedriven{Outcome: messages.LetterOutcome(outcome), Id: text(id)}, err
}

// RedriveQueueLetter is that of wakebell.Client. When the link breaks it fails with
// wakebell.ErrUnavailable, and nobody knows.
func (c *Client) RedriveQueueLetter(ctx context.Context, name wakebell.QueueName, l wakebell.QueueLetter, o wakebell.QueueRedrive) (wakebell.LetterOutcome, string, error) {
	request := &messages.RedriveQueueLetter{
		Name: name.Name, Queue: queueMessage(name), Entry: l.Entry, Body: l.Payload, Window: span(o.Window), FreesKeys: o.FreesKeys,
	}
	if o.Key != nil {
		request.Key = o.Key(l)
	}
	answer, err := once[messages.QueueLetterRedriven](ctx, c, request)
	if err != nil {
		return 0, "", err
	}
	return wakebell.LetterOutcome(answer.GetOutcome()), answer.GetId(), nil //nolint:gosec // numbered alike
}

// What goes in one DeleteQueueLetters, at the most; a single letter may be
// larger.
const maxLetters, maxLettersBytes = 1000, 1 << 20

func deleteQueueLetters(ctx context.Context, o *operations, m *messages.DeleteQueueLetters) (*messages.Removed, error) {
	if len(m.GetLetters()) > maxLetters {
		return nil, invalid("letters", "%d, at most %d", len(m.GetLetters()), maxLetters)
	}
	letters := make([]wakebell.QueueLetter, len(m.GetLetters()))
	for i, l := range m.GetLetters() {
		letters[i] = letterOf(l)
	}
	n, err := o.client().DeleteQueueLetters(ctx, queueName(m), letters...)
	return &messages.Removed{Count: int64(n)}, err
}

// DeleteQueueLetters is that of wakebell.Client. After an error, as when the link
// breaks, it may not count all that it has deleted.
func (c *Client) DeleteQueueLetters(ctx context.Context, name wakebell.QueueName, letters ...wakebell.QueueLetter) (int, error) {
	for total := 0; ; {
		n := c.fittingLetters(letters)
		request := &messages.DeleteQueueLetters{Name: name.Name, Queue: queueMessage(name)}
		for _, l := range letters[:n] {
			request.Letters = append(request.Letters, &messages.QueueLetter{Entry: text(l.Entry), Body: l.Payload})
		}
		answer, err := once[messages.Removed](ctx, c, request)
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

func letterMessage(l wakebell.QueueLetter) *messages.QueueLetter {
	return &messages.QueueLetter{
		Entry: text(l.Entry), Body: l.Payload, Id: text(l.ID), Reason: text(l.Reason),
		Deliveries: count(l.Deliveries), At: timestamp(l.At),
	}
}

func letterOf(m *messages.QueueLetter) wakebell.QueueLetter {
	return wakebell.QueueLetter{
		Entry: m.GetEntry(), Payload: m.GetBody(), ID: m.GetId(), Reason: m.GetReason(),
		Deliveries: int(m.GetDeliveries()), At: instantOf(m.GetAt()),
	}
}
