package remote

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/internal/text"
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
		Topic: topic, Filter: wire.HistoryFilterMessage(f), Last: convert.Count(f.Last), After: p.After, Limit: convert.Count(p.Limit),
	})
	return paging.Limited(p, wire.Each(attempts, func(m *messages.ListHistoryResponse) wakebelltype.Attempt {
		return wire.AttemptOf(m.GetAttempt())
	}))
}

// CountDue does what wakebell.Client.CountDue does.
func (c *Client) CountDue(ctx context.Context, topic string, from time.Time, step time.Duration, n int) ([]int64, error) {
	answer, err := operate(ctx, c, rpc.OperationsClient.CountDue, &messages.CountDueRequest{
		Topic: topic, From: convert.Timestamp(from), Step: durationpb.New(step), Steps: convert.Count(n),
	})
	if err != nil {
		return nil, err
	}
	if got := answer.GetCounts(); len(got) == n {
		return got, nil
	}
	return nil, fmt.Errorf("unexpected answer: %d counts for %d steps", len(answer.GetCounts()), n)
}

// Throughput does what wakebell.Client.Throughput does.
func (c *Client) Throughput(ctx context.Context, topic string, since time.Duration) (wakebelltype.Throughput, error) {
	answer, err := operate(ctx, c, rpc.OperationsClient.GetThroughput, &messages.GetThroughputRequest{Topic: topic, Since: durationpb.New(since)})
	if err != nil {
		return wakebelltype.Throughput{}, err
	}
	return wire.ThroughputOf(answer), nil
}

// Audit does what wakebell.Client.Audit does, for the gates of the node's Redis and
// for what begins with the node's prefix, under names without it. It needs the right
// to operate all topics. If the link breaks, it ends with wakebell.ErrUnavailable.
func (c *Client) Audit(ctx context.Context, f wakebelltype.AuditFilter, p wakebelltype.Page) iter.Seq2[wakebelltype.AuditEntry, error] {
	if f.Last < 0 {
		return func(yield func(wakebelltype.AuditEntry, error) bool) {
			yield(wakebelltype.AuditEntry{}, argument.Invalid("last", "%d, want 1 to 1000", f.Last))
		}
	}
	entries := list(ctx, c, rpc.OperationsClient.ListAudit, &messages.ListAuditRequest{
		Filter: wire.AuditFilterMessage(f), Last: convert.Count(f.Last), After: p.After, Limit: convert.Count(p.Limit),
	})
	return paging.Limited(p, wire.Each(entries, func(m *messages.ListAuditResponse) wakebelltype.AuditEntry {
		return wire.AuditOf(m.GetEntry())
	}))
}

// RecordChange does what wakebell.Client.RecordChange does. It needs the right to
// operate the topic or the queue. If the link breaks, the request is repeated with an
// idempotency key (that of WithKey, or one of its own), so there is one entry.
func (c *Client) RecordChange(ctx context.Context, change wakebelltype.Change) error {
	_, err := operate(ctx, c, rpc.OperationsClient.RecordChange, &messages.RecordChangeRequest{
		Operation: text.Valid(string(change.Operation)), Name: change.Name, Count: change.Count,
		Detail: text.Valid(change.Detail), Error: text.Valid(change.Error), Key: onceKey(ctx),
	})
	return err
}

var _ wakebell.Waiter = (*Client)(nil)

// Report does what wakebell.Client.Report does.
func (c *Client) Report(ctx context.Context, topic, id string) (wakebell.Report, error) {
	e, err := c.waitTimer(ctx, &messages.WaitTimerRequest{Topic: topic, Id: id, Report: true})
	return e.Report, err
}

// Wait does what wakebell.Client.Wait does. The node watches the timer. If the link breaks,
// the call is repeated once the client has reconnected, until ctx ends or the link has been
// down for DialConfig.DeadLink.
func (c *Client) Wait(ctx context.Context, topic, id string) (wakebell.Ending, error) {
	for {
		e, err := c.waitTimer(ctx, &messages.WaitTimerRequest{Topic: topic, Id: id})
		if !errors.Is(err, wakebell.ErrUnavailable) || ctx.Err() != nil {
			return e, err
		}
		if down := c.link.wait(ctx); down != nil {
			return e, down
		}
		select {
		case <-ctx.Done():
			return e, ctx.Err()
		case <-time.After(waitAgain):
		}
	}
}

// waitAgain is the pause before a wait that failed is repeated.
const waitAgain = time.Second

func (c *Client) waitTimer(ctx context.Context, m *messages.WaitTimerRequest) (wakebell.Ending, error) {
	for answer, err := range list(ctx, c, rpc.OperationsClient.WaitTimer, m) {
		if err != nil {
			return wakebell.Ending{}, err
		}
		return wire.EndingOf(answer), nil
	}
	return wakebell.Ending{}, fmt.Errorf("wait for %q on %q: %w", m.GetId(), m.GetTopic(), wakebell.ErrUnavailable)
}

// Tail does what wakebell.Client.Tail does. If the link breaks, it ends with
// wakebell.ErrUnavailable.
func (c *Client) Tail(ctx context.Context, topic string) iter.Seq2[wakebelltype.Event, error] {
	return wire.Each(list(ctx, c, rpc.OperationsClient.Tail, &messages.TailRequest{Topic: topic, States: true}), func(answer *messages.TailResponse) wakebelltype.Event {
		m := answer.GetEvent()
		return wakebelltype.Event{
			Kind: wakebelltype.EventKind(m.GetKind()), Topic: m.GetTopic(), Node: m.GetNode(), At: convert.Time(m.GetAt()),
			ID: m.GetId(), Attempt: int(m.GetAttempt()),
			Lateness: m.GetLateness().AsDuration(), Took: m.GetTook().AsDuration(), RetryIn: m.GetRetryIn().AsDuration(),
			Text: m.GetText(), Entry: m.GetEntry(), Missed: int(m.GetMissed()), State: wire.NodeStateOf(m.GetState()),
		}
	})
}
