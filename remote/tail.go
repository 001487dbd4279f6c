package remote

import (
	"context"
	"iter"

	fields "github.com/wakebell/wakebell/internal/wire"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Tail does what wakebell.Client.Tail does. If the link breaks, it ends with
// wakebell.ErrUnavailable.
func (c *Client) Tail(ctx context.Context, topic string) iter.Seq2[wakebelltype.Event, error] {
	return wire.Each(list(ctx, c, rpc.OperationsClient.Tail, &messages.TailRequest{Topic: topic}), func(answer *messages.TailResponse) wakebelltype.Event {
		m := answer.GetEvent()
		return wakebelltype.Event{
			Kind: wakebelltype.EventKind(m.GetKind()), Topic: m.GetTopic(), Node: m.GetNode(), At: fields.Time(m.GetAt()),
			ID: m.GetId(), Attempt: int(m.GetAttempt()),
			Lateness: m.GetLateness().AsDuration(), Took: m.GetTook().AsDuration(), RetryIn: m.GetRetryIn().AsDuration(),
			Text: m.GetText(), Entry: m.GetEntry(), Missed: int(m.GetMissed()),
		}
	})
}
