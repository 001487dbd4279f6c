package remote

import (
	"context"
	"iter"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/paging"
	fields "github.com/wakebell/wakebell/internal/wire"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/wakebelltype"
)

// History does what wakebell.Client.History does. If the link breaks, it ends with
// wakebell.ErrUnavailable.
func (c *Client) History(ctx context.Context, topic string, f wakebelltype.HistoryFilter, p wakebelltype.Page) iter.Seq2[wakebelltype.Attempt, error] {
	if f.Last < 0 {
		return func(yield func(wakebelltype.Attempt, error) bool) {
			yield(wakebelltype.Attempt{}, argument.Invalid("last", "%d, want 1 to 1000", f.Last))
		}
	}
	attempts := list(ctx, c, rpc.OperationsClient.ListHistory, &messages.ListHistoryRequest{
		Topic: topic, Filter: wire.HistoryFilterMessage(f), Last: fields.Count(f.Last), After: p.After, Limit: fields.Count(p.Limit),
	})
	return paging.Limited(p, wire.Each(attempts, func(m *messages.ListHistoryResponse) wakebelltype.Attempt {
		return wire.AttemptOf(m.GetAttempt())
	}))
}

// Throughput does what wakebell.Client.Throughput does.
func (c *Client) Throughput(ctx context.Context, topic string, since time.Duration) (wakebelltype.Throughput, error) {
	answer, err := operate(ctx, c, rpc.OperationsClient.GetThroughput, &messages.GetThroughputRequest{Topic: topic, Since: durationpb.New(since)})
	if err != nil {
		return wakebelltype.Throughput{}, err
	}
	return wire.ThroughputOf(answer), nil
}
