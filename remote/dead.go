package remote

import (
	"context"
	"iter"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/paging"
	fields "github.com/wakebell/wakebell/internal/wire"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/wakebelltype"
)

// DeadLetters does what wakebell.Client.DeadLetters does. If the link breaks, it
// ends with wakebell.ErrUnavailable.
func (c *Client) DeadLetters(ctx context.Context, topic string, f wakebelltype.DeadFilter, p wakebelltype.Page) iter.Seq2[wakebell.DeadLetter, error] {
	return paging.Limited(p, c.listDeadLetters(ctx, &messages.ListDeadLettersRequest{
		Topic: topic, Filter: wire.DeadFilterMessage(f), After: p.After, Limit: fields.Count(p.Limit),
	}))
}

// LastDead does what wakebell.Client.LastDead does, for n from 1 to 1,000.
func (c *Client) LastDead(ctx context.Context, topic string, n int) ([]wakebell.DeadLetter, error) {
	if n < 1 {
		return nil, argument.Invalid("n", "%d, want 1 to 1000", n)
	}
	var all []wakebell.DeadLetter
	for d, err := range c.listDeadLetters(ctx, &messages.ListDeadLettersRequest{Topic: topic, Last: fields.Count(n)}) {
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
		Topic: topic, Filter: wire.DeadFilterMessage(o.Filter), In: wire.Span(o.In), Overwrite: o.Overwrite, Rate: fields.Count(o.Rate),
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
