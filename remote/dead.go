package remote

import (
	"context"
	"iter"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/internal/opened"
	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/wakebelltype"
)

// DeadLetters does what wakebell.Client.DeadLetters does. If the link breaks, it
// ends with wakebell.ErrUnavailable.
func (c *Client) DeadLetters(ctx context.Context, topic string, f wakebelltype.DeadFilter, p wakebelltype.Page) iter.Seq2[wakebell.DeadLetter, error] {
	return paging.Limited(p, c.listDeadLetters(ctx, &messages.ListDeadLettersRequest{
		Topic: topic, Filter: wire.DeadFilterMessage(f), After: p.After, Limit: convert.Count(p.Limit),
	}))
}

// LastDead does what wakebell.Client.LastDead does, for n from 1 to 1,000.
func (c *Client) LastDead(ctx context.Context, topic string, n int) ([]wakebell.DeadLetter, error) {
	if n < 1 {
		return nil, argument.Invalid("n", "%d, want 1 to 1000", n)
	}
	var all []wakebell.DeadLetter
	for d, err := range c.listDeadLetters(ctx, &messages.ListDeadLettersRequest{Topic: topic, Last: convert.Count(n)}) {
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

func (c *Client) listDeadLetters(ctx context.Context, request *messages.ListDeadLettersRequest) iter.Seq2[wakebell.DeadLetter, error] {
	return wire.Each(list(ctx, c, rpc.OperationsClient.ListDeadLetters, request), func(m *messages.ListDeadLettersResponse) wakebell.DeadLetter {
		return wire.DeadOf(request.GetTopic(), m.GetDeadLetter())
	})
}

// DeadLetter does what wakebell.Client.DeadLetter does.
func (c *Client) DeadLetter(ctx context.Context, topic, entry string) (wakebell.DeadLetter, error) {
	answer, err := operate(ctx, c, rpc.OperationsClient.GetDeadLetter, &messages.GetDeadLetterRequest{Topic: topic, Entry: entry})
	if err != nil {
		return wakebell.DeadLetter{}, err
	}
	return wire.DeadOf(topic, answer.GetDeadLetter()), nil
}

// Redrive does what wakebell.Client.Redrive does. If the link breaks, it returns
// wakebell.ErrUnavailable, and the result may miss dead letters that were redriven.
// Calling it again continues with the remaining ones.
func (c *Client) Redrive(ctx context.Context, topic string, o wakebelltype.RedriveOptions) (wakebelltype.RedriveResult, error) {
	var done wakebelltype.RedriveResult
	if o.Rate < 0 {
		return done, argument.Invalid("rate", "%d a second, want 1 to 10000", o.Rate)
	}
	request := &messages.RedriveDeadLettersRequest{
		Topic: topic, Filter: wire.DeadFilterMessage(o.Filter), In: wire.Span(o.In), Overwrite: o.Overwrite, Rate: convert.Count(o.Rate),
	}
	for m, err := range list(ctx, c, rpc.OperationsClient.RedriveDeadLetters, request) {
		if err != nil {
			return done, err
		}
		l := wakebelltype.RedrivenLetter{
			Entry: m.GetEntry(), ID: m.GetId(), Outcome: wakebelltype.RedriveOutcome(m.GetOutcome()), //nolint:gosec // numbered alike
		}
		done.Add(l.Outcome)
		if o.Each != nil {
			o.Each(l)
		}
	}
	return done, nil
}

// DeleteDead does what wakebell.Client.DeleteDead does, but returns 0 with an
// error. If the link breaks, it returns wakebell.ErrUnavailable, and some dead
// letters may have been deleted.
func (c *Client) DeleteDead(ctx context.Context, topic string, f wakebelltype.DeadFilter) (int64, error) {
	answer, err := once(ctx, c, rpc.OperationsClient.DeleteDeadLetters, &messages.DeleteDeadLettersRequest{Topic: topic, Filter: wire.DeadFilterMessage(f)})
	return answer.GetCount(), err
}

// DeadLetters does what queue.Client.DeadLetters does. If the link breaks, it ends
// with wakebell.ErrUnavailable.
func (q *Queues) DeadLetters(ctx context.Context, name wakebelltype.QueueKeys, p wakebelltype.Page) iter.Seq2[wakebelltype.QueueDeadLetter, error] {
	request := &messages.ListQueueDeadLettersRequest{
		Name: name.Name, Queue: wire.QueueMessage(name), After: p.After, Limit: convert.Count(p.Limit), ByMasters: opened.IsByMasters(ctx),
	}
	return paging.Limited(p, wire.Each(list(ctx, q.client, rpc.OperationsClient.ListQueueDeadLetters, request), func(m *messages.ListQueueDeadLettersResponse) wakebelltype.QueueDeadLetter {
		return wire.QueueDeadLetterOf(m.GetDeadLetter())
	}))
}

// DeadLetter does what queue.Client.DeadLetter does.
func (q *Queues) DeadLetter(ctx context.Context, name wakebelltype.QueueKeys, entry string) (wakebelltype.QueueDeadLetter, error) {
	answer, err := operate(ctx, q.client, rpc.OperationsClient.GetQueueDeadLetter, &messages.GetQueueDeadLetterRequest{
		Name: name.Name, Queue: wire.QueueMessage(name), Entry: entry,
	})
	if err != nil {
		return wakebelltype.QueueDeadLetter{}, err
	}
	return wire.QueueDeadLetterOf(answer.GetDeadLetter()), nil
}

// RedriveDeadLetter does what queue.Client.RedriveDeadLetter does. If the link
// breaks, it returns wakebell.ErrUnavailable, and the message may have been
// published.
func (q *Queues) RedriveDeadLetter(ctx context.Context, name wakebelltype.QueueKeys, l wakebelltype.QueueDeadLetter, o queue.RedriveOptions) (wakebelltype.QueueRedriveOutcome, string, error) {
	request := &messages.RedriveQueueDeadLetterRequest{
		Name: name.Name, Queue: wire.QueueMessage(name), Entry: l.Entry, Body: l.Payload, Window: wire.Span(o.Window), FreesKeys: o.FreeKeyOnFailure,
	}
	if o.Key != nil {
		request.Key = o.Key(l)
	}
	answer, err := once(ctx, q.client, rpc.OperationsClient.RedriveQueueDeadLetter, request)
	if err != nil {
		return 0, "", err
	}
	return wakebelltype.QueueRedriveOutcome(answer.GetOutcome()), answer.GetId(), nil //nolint:gosec // numbered alike
}

// DeleteDeadLetters does what queue.Client.DeleteDeadLetters does. With an error,
// such as wakebell.ErrUnavailable after the link broke, the count may miss dead
// letters that were deleted.
func (q *Queues) DeleteDeadLetters(ctx context.Context, name wakebelltype.QueueKeys, letters ...wakebelltype.QueueDeadLetter) (int, error) {
	for total := 0; ; {
		n := q.fittingLetters(letters)
		request := &messages.DeleteQueueDeadLettersRequest{Name: name.Name, Queue: wire.QueueMessage(name)}
		for _, l := range letters[:n] {
			request.DeadLetters = append(request.DeadLetters, &messages.QueueDeadLetter{Entry: text.Valid(l.Entry), Body: l.Payload})
		}
		answer, err := once(ctx, q.client, rpc.OperationsClient.DeleteQueueDeadLetters, request)
		total += int(answer.GetCount())
		letters = letters[n:]
		if err != nil || len(letters) == 0 {
			return total, err
		}
	}
}

// fittingLetters returns how many of the first dead letters fit into one request.
func (q *Queues) fittingLetters(letters []wakebelltype.QueueDeadLetter) (n int) {
	for size := wire.FrameOverhead; n < min(len(letters), wire.MaxDeadLetters); n++ {
		size += len(letters[n].Payload) + len(letters[n].Entry) + wire.EnvelopeOverhead
		if n > 0 && size > min(wire.MaxDeadLettersBytes, q.client.cfg.MaxMessage/2) {
			break
		}
	}
	return n
}
