package remote

import (
	"context"
	"iter"

	"github.com/wakebell/wakebell"
	fields "github.com/wakebell/wakebell/internal/wire"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

// Tail does what wakebell.Client.Tail does. If the link breaks, it ends with
// wakebell.ErrUnavailable.
func (c *Client) Tail(ctx context.Context, topic string) iter.Seq2[wakebell.Event, error] {
	return wire.Each(list(ctx, c, rpc.OperationsClient.Tail, &messages.TailRequest{Topic: topic}), func(answer *messages.TailResponse) wakebell.Event {
		m := answer.GetEvent()
		return wakebell.Event{
			Kind: wakebell.EventKind(m.GetKind()), Topic: m.GetTopic(), Node: m.GetNode(), At: fields.Time(m.GetAt()),
			ID: m.GetId(), Attempt: int(m.GetAttempt()),
			Lateness: m.GetLateness().AsDuration(), Took: m.GetTook().AsDuration(), RetryIn: m.GetRetryIn().AsDuration(),
			Text: m.GetText(), Entry: m.GetEntry(), Missed: int(m.GetMissed()),
		}
	})
}
