package remote

import (
	"context"
	"iter"

	"google.golang.org/grpc"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
)

func (o *operations) Tail(m *messages.TailRequest, stream grpc.ServerStreamingServer[messages.TailResponse]) error {
	return listing(o, m, stream, o.tail)
}

func (o *operations) tail(ctx context.Context, m *messages.TailRequest) iter.Seq2[*messages.TailResponse, error] {
	return each(o.client().Tail(ctx, m.GetTopic()), func(e wakebell.Event) *messages.TailResponse {
		topic, _ := o.bare(e.Topic)
		return &messages.TailResponse{Event: &messages.TopicEvent{
			Kind: text(string(e.Kind)), Topic: text(topic), Node: text(e.Node), At: timestamp(e.At), Id: text(e.ID), Attempt: count(e.Attempt),
			Lateness: span(e.Lateness), Took: span(e.Took), RetryIn: span(e.RetryIn), Text: text(e.Text), Entry: text(e.Entry), Missed: count(e.Missed),
		}}
	})
}

// Tail is that of wakebell.Client. When the link breaks it ends with
// wakebell.ErrUnavailable.
func (c *Client) Tail(ctx context.Context, topic string) iter.Seq2[wakebell.Event, error] {
	return each(list(ctx, c, rpc.OperationsClient.Tail, &messages.TailRequest{Topic: topic}), func(answer *messages.TailResponse) wakebell.Event {
		m := answer.GetEvent()
		return wakebell.Event{
			Kind: wakebell.EventKind(m.GetKind()), Topic: m.GetTopic(), Node: m.GetNode(), At: instantOf(m.GetAt()),
			ID: m.GetId(), Attempt: int(m.GetAttempt()),
			Lateness: m.GetLateness().AsDuration(), Took: m.GetTook().AsDuration(), RetryIn: m.GetRetryIn().AsDuration(),
			Text: m.GetText(), Entry: m.GetEntry(), Missed: int(m.GetMissed()),
		}
	})
}
