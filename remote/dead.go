package remote

import (
	"context"
	"iter"
	"math"
	"strings"

	"google.golang.org/grpc"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
)

func (o *operations) ListDeadLetters(m *messages.ListDeadLettersRequest, stream grpc.ServerStreamingServer[messages.ListDeadLettersResponse]) error {
	return listing(o, m, stream, o.listDeadLetters)
}

func (o *operations) listDeadLetters(ctx context.Context, m *messages.ListDeadLettersRequest) iter.Seq2[*messages.ListDeadLettersResponse, error] {
	if m.GetLast() == 0 {
		return each(o.client().DeadLetters(ctx, m.GetTopic(), deadFilterOf(m.GetFilter())), listedDeadLetter)
	}
	return func(yield func(*messages.ListDeadLettersResponse, error) bool) {
		letters, err := o.client().LastDead(ctx, m.GetTopic(), int(min(m.GetLast(), math.MaxInt32)))
		if err != nil {
			yield(nil, err)
			return
		}
		for _, d := range letters {
			if !yield(listedDeadLetter(d), nil) {
				return
			}
		}
	}
}

func listedDeadLetter(d wakebell.DeadLetter) *messages.ListDeadLettersResponse {
	return &messages.ListDeadLettersResponse{DeadLetter: deadMessage(d)}
}

// DeadLetters is that of wakebell.Client.
func (c *Client) DeadLetters(ctx context.Context, topic string, f wakebell.DeadFilter) iter.Seq2[wakebell.DeadLetter, error] {
	return c.listDeadLetters(ctx, &messages.ListDeadLettersRequest{Topic: topic, Filter: deadFilterMessage(f)})
}

// LastDead is that of wakebell.Client.
func (c *Client) LastDead(ctx context.Context, topic string, n int) ([]wakebell.DeadLetter, error) {
	if n < 1 {
		return nil, invalid("n", "%d, want 1 to 1000", n)
	}
	var all []wakebell.DeadLetter
	for d, err := range c.listDeadLetters(ctx, &messages.ListDeadLettersRequest{Topic: topic, Last: count(n)}) {
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

func (c *Client) listDeadLetters(ctx context.Context, request *messages.ListDeadLettersRequest) iter.Seq2[wakebell.DeadLetter, error] {
	return each(list(ctx, c, rpc.OperationsClient.ListDeadLetters, request), func(m *messages.ListDeadLettersResponse) wakebell.DeadLetter {
		return deadOf(request.GetTopic(), m.GetDeadLetter())
	})
}

func (o *operations) GetDeadLetter(ctx context.Context, m *messages.GetDeadLetterRequest) (*messages.GetDeadLetterResponse, error) {
	d, err := o.client().DeadLetter(ctx, m.GetTopic(), m.GetEntry())
	return &messages.GetDeadLetterResponse{DeadLetter: deadMessage(d)}, err
}

// DeadLetter is that of wakebell.Client.
func (c *Client) DeadLetter(ctx context.Context, topic, entry string) (wakebell.DeadLetter, error) {
	answer, err := operate(ctx, c, rpc.OperationsClient.GetDeadLetter, &messages.GetDeadLetterRequest{Topic: topic, Entry: entry})
	if err != nil {
		return wakebell.DeadLetter{}, err
	}
	return deadOf(topic, answer.GetDeadLetter()), nil
}

func (o *operations) RedriveDeadLetters(m *messages.RedriveDeadLettersRequest, stream grpc.ServerStreamingServer[messages.RedriveDeadLettersResponse]) error {
	return listing(o, m, stream, o.redriveDeadLetters)
}

func (o *operations) redriveDeadLetters(ctx context.Context, m *messages.RedriveDeadLettersRequest) iter.Seq2[*messages.RedriveDeadLettersResponse, error] {
	return func(yield func(*messages.RedriveDeadLettersResponse, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		options := wakebell.RedriveOptions{
			Filter: deadFilterOf(m.GetFilter()), In: m.GetIn().AsDuration(), Overwrite: m.GetOverwrite(), Rate: int(min(m.GetRate(), math.MaxInt32)),
		}
		left := false
		options.Each = func(l wakebell.RedrivenLetter) {
			if !left && !yield(&messages.RedriveDeadLettersResponse{
				Entry: text(l.Entry), Id: text(l.ID), Outcome: messages.RedriveOutcome(l.Outcome),
			}, nil) {
				left = true
				cancel()
			}
		}
		if _, err := o.client().Redrive(ctx, m.GetTopic(), options); err != nil && !left {
			yield(nil, err)
		}
	}
}

// Redrive is that of wakebell.Client. When the link breaks it ends with
// wakebell.ErrUnavailable; what was redriven meanwhile may not be counted.
func (c *Client) Redrive(ctx context.Context, topic string, o wakebell.RedriveOptions) (wakebell.RedriveResult, error) {
	var done wakebell.RedriveResult
	if o.Rate < 0 {
		return done, invalid("rate", "%d a second, want 1 to 10000", o.Rate)
	}
	request := &messages.RedriveDeadLettersRequest{
		Topic: topic, Filter: deadFilterMessage(o.Filter), In: span(o.In), Overwrite: o.Overwrite, Rate: count(o.Rate),
	}
	for m, err := range list(ctx, c, rpc.OperationsClient.RedriveDeadLetters, request) {
		if err != nil {
			return done, err
		}
		l := wakebell.RedrivenLetter{
			Entry: m.GetEntry(), ID: m.GetId(), Outcome: wakebell.RedriveOutcome(m.GetOutcome()), //nolint:gosec // numbered alike
		}
		done.Add(l.Outcome)
		if o.Each != nil {
			o.Each(l)
		}
	}
	return done, nil
}

func (o *operations) DeleteDeadLetters(ctx context.Context, m *messages.DeleteDeadLettersRequest) (*messages.DeleteDeadLettersResponse, error) {
	n, err := o.client().DeleteDead(ctx, m.GetTopic(), deadFilterOf(m.GetFilter()))
	return &messages.DeleteDeadLettersResponse{Count: n}, err
}

// DeleteDead is that of wakebell.Client. After an error it counts none; when the
// link breaks it is wakebell.ErrUnavailable, and nobody knows.
func (c *Client) DeleteDead(ctx context.Context, topic string, f wakebell.DeadFilter) (int64, error) {
	answer, err := once(ctx, c, rpc.OperationsClient.DeleteDeadLetters, &messages.DeleteDeadLettersRequest{Topic: topic, Filter: deadFilterMessage(f)})
	return answer.GetCount(), err
}

func deadFilterMessage(f wakebell.DeadFilter) *messages.DeadLetterFilter {
	return &messages.DeadLetterFilter{
		Entry: f.Entry, Reason: text(f.Reason), ReasonPrefix: text(f.ReasonPrefix), OlderThan: span(f.OlderThan), NewerThan: span(f.NewerThan),
	}
}

func deadFilterOf(m *messages.DeadLetterFilter) wakebell.DeadFilter {
	return wakebell.DeadFilter{
		Entry: m.GetEntry(), Reason: m.GetReason(), ReasonPrefix: m.GetReasonPrefix(),
		OlderThan: m.GetOlderThan().AsDuration(), NewerThan: m.GetNewerThan().AsDuration(),
	}
}

func deadMessage(d wakebell.DeadLetter) *messages.DeadLetter {
	return &messages.DeadLetter{
		Entry: text(d.Entry), Id: text(d.ID), Reason: text(d.Reason), Attempts: count(d.Attempts), Failures: count(d.Failures),
		Activation: timestamp(d.Activation), Died: timestamp(d.Died), Content: wakebell.ContentMessage(d.Content),
	}
}

func deadOf(topic string, m *messages.DeadLetter) wakebell.DeadLetter {
	return wakebell.DeadLetter{
		Entry: m.GetEntry(), ID: m.GetId(), Topic: topic, Reason: m.GetReason(), Attempts: int(m.GetAttempts()), Failures: int(m.GetFailures()),
		Activation: instantOf(m.GetActivation()), Died: instantOf(m.GetDied()), Content: contentOf(m.GetContent()),
	}
}

// text is what fits the wire of a text that somebody else wrote.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
