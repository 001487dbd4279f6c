package server

import (
	"context"
	"errors"
	"iter"
	"strings"

	"google.golang.org/grpc"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/peer"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/remote/rights"
	"github.com/wakebell/wakebell/wakebelltype"
)

func (o *operations) Tail(m *messages.TailRequest, stream grpc.ServerStreamingServer[messages.TailResponse]) error {
	return listing(o, m, stream, o.tail)
}

func (o *operations) tail(ctx context.Context, m *messages.TailRequest) iter.Seq2[*messages.TailResponse, error] {
	events := o.client().Tail(ctx, m.GetTopic())
	if !m.GetStates() {
		events = withoutStates(events)
	}
	return wire.Each(events, func(e wakebelltype.Event) *messages.TailResponse {
		topic, _ := o.bare(e.Topic)
		return &messages.TailResponse{Event: &messages.TopicEvent{
			Kind: text.Valid(string(e.Kind)), Topic: text.Valid(topic), Node: text.Valid(e.Node), At: convert.Timestamp(e.At), Id: text.Valid(e.ID), Attempt: convert.Count(e.Attempt),
			Lateness: wire.Span(e.Lateness), Took: wire.Span(e.Took), RetryIn: wire.Span(e.RetryIn), Text: text.Valid(e.Text), Entry: text.Valid(e.Entry), Missed: convert.Count(e.Missed),
			State: wire.NodeStateMessage(e.State),
		}}
	})
}

// withoutStates leaves out what clients of earlier versions do not expect.
func withoutStates(events iter.Seq2[wakebelltype.Event, error]) iter.Seq2[wakebelltype.Event, error] {
	return func(yield func(wakebelltype.Event, error) bool) {
		for e, err := range events {
			if (err != nil || e.Kind != wakebelltype.EventState) && !yield(e, err) {
				return
			}
		}
	}
}

// bare returns the name of a topic without the System's prefix. It returns false if
// the topic is not the System's.
func (o *operations) bare(topic string) (string, bool) {
	name, ours := strings.CutPrefix(topic, o.client().Prefix())
	return name, ours && name != ""
}

func (o *operations) ListTopics(m *messages.ListTopicsRequest, stream grpc.ServerStreamingServer[messages.ListTopicsResponse]) error {
	return listing(o, m, stream, o.listTopics)
}

func (o *operations) listTopics(ctx context.Context, m *messages.ListTopicsRequest) iter.Seq2[*messages.ListTopicsResponse, error] {
	page := wire.PageOf(m)
	from := wakebelltype.Page{After: o.client().Prefix() + page.After}
	return paging.Limited(page, func(yield func(*messages.ListTopicsResponse, error) bool) {
		for full, err := range o.client().Topics(ctx, m.GetDiscover(), from) {
			name, ours := o.bare(full)
			if err == nil && (!ours || !o.Sees(ctx, rights.KindTopic, name)) {
				continue
			}
			if !yield(&messages.ListTopicsResponse{Topic: text.Valid(name)}, err) {
				return
			}
		}
	})
}

func (o *operations) GetOverviews(ctx context.Context, m *messages.GetOverviewsRequest) (*messages.GetOverviewsResponse, error) {
	if len(m.GetTopics()) > wire.MaxOverviews {
		return nil, argument.Invalid("topics", "%d, at most %d", len(m.GetTopics()), wire.MaxOverviews)
	}
	all, err := o.client().Overview(ctx, m.GetTopics()...)
	if err != nil {
		return nil, err
	}
	answer := &messages.GetOverviewsResponse{}
	for i, of := range all {
		t := &messages.TopicOverview{Topic: m.GetTopics()[i], Stats: convert.StatsMessage(of.Stats), Control: wire.ControlMessage(of.Control), Nodes: int32(of.Nodes), Shards: convert.Count(of.Shards), Reports: wire.ReportMessages(of.Reports), Damage: text.Valid(of.Damage), Recent: wire.CountsMessage(of.Recent)}
		for _, node := range of.Division {
			t.Division = append(t.Division, text.Valid(node))
		}
		if of.Err != nil {
			t.Fault = peer.ErrorOf(ctx, of.Err)
		}
		answer.Topics = append(answer.Topics, t)
	}
	return answer, nil
}

func (o *operations) AskNodes(ctx context.Context, m *messages.AskNodesRequest) (*messages.AskNodesResponse, error) {
	if len(m.GetTopics()) > wire.MaxOverviews {
		return nil, argument.Invalid("topics", "%d, at most %d", len(m.GetTopics()), wire.MaxOverviews)
	}
	answers, err := o.client().AskNodes(ctx, m.GetTopics()...)
	out := &messages.AskNodesResponse{}
	if unasked, ok := errors.AsType[*wakebelltype.UnaskedError](err); ok {
		out.Unasked, out.Error = unasked.Topics, convert.ErrorMessage(unasked.Err)
	} else if err != nil {
		return nil, err
	}
	for _, a := range answers {
		out.Answers = append(out.Answers, &messages.NodeAnswer{Topic: text.Valid(a.Topic), Node: text.Valid(a.Node), State: wire.NodeStateMessage(a.State)})
	}
	return out, nil
}

func (o *operations) CancelAll(ctx context.Context, m *messages.CancelAllRequest) (*messages.CancelAllResponse, error) {
	n, err := o.client().CancelAll(ctx, m.GetTopic())
	return &messages.CancelAllResponse{Count: n}, err
}

func (o *operations) ForgetTopic(ctx context.Context, m *messages.ForgetTopicRequest) (*messages.ForgetTopicResponse, error) {
	return &messages.ForgetTopicResponse{}, o.client().Forget(ctx, m.GetTopic())
}

func (o *operations) RemoveTopic(ctx context.Context, m *messages.RemoveTopicRequest) (*messages.RemoveTopicResponse, error) {
	r, err := o.client().RemoveTopic(ctx, m.GetTopic())
	return &messages.RemoveTopicResponse{Existed: r.Existed, Use: text.Valid(r.Use)}, err
}

func (o *operations) GetTopicShards(ctx context.Context, m *messages.GetTopicShardsRequest) (*messages.GetTopicShardsResponse, error) {
	l, err := o.client().Shards(ctx, m.GetTopic())
	return &messages.GetTopicShardsResponse{Shards: wire.ShardsMessage(l)}, err
}

func (o *operations) DivideTopic(ctx context.Context, m *messages.DivideTopicRequest) (*messages.DivideTopicResponse, error) {
	l, err := o.client().Divide(ctx, m.GetTopic(), int(m.GetShards()))
	return &messages.DivideTopicResponse{Shards: wire.ShardsMessage(l)}, err
}

func (o *operations) ReshardTopic(m *messages.ReshardTopicRequest, stream grpc.ServerStreamingServer[messages.ReshardTopicResponse]) error {
	return listing(o, m, stream, o.reshardTopic)
}

func (o *operations) reshardTopic(ctx context.Context, m *messages.ReshardTopicRequest) iter.Seq2[*messages.ReshardTopicResponse, error] {
	return wire.Each(o.client().Reshard(ctx, m.GetTopic(), int(m.GetShards())), func(r wakebelltype.Resharding) *messages.ReshardTopicResponse {
		return &messages.ReshardTopicResponse{Shards: wire.ShardsMessage(r.Layout), Moved: r.Moved, Left: r.Left, Done: r.Done}
	})
}

func (o *operations) Diagnose(ctx context.Context, m *messages.DiagnoseRequest) (*messages.DiagnoseResponse, error) {
	found, err := o.client().Diagnose(ctx, m.GetTopics()...)
	if err != nil {
		return nil, err
	}
	answer := &messages.DiagnoseResponse{}
	for _, f := range o.guard.Findings(found) {
		topic, _ := o.bare(f.Topic)
		answer.Findings = append(answer.Findings, &messages.Finding{
			Check: f.Check, Server: text.Valid(f.Server), Topic: text.Valid(topic), Grade: string(f.Grade), Found: text.Valid(f.Found), Do: text.Valid(f.Do),
		})
	}
	return answer, nil
}

func (o *operations) WaitTimer(m *messages.WaitTimerRequest, stream grpc.ServerStreamingServer[messages.WaitTimerResponse]) error {
	return listing(o, m, stream, o.waitTimer)
}

func (o *operations) waitTimer(ctx context.Context, m *messages.WaitTimerRequest) iter.Seq2[*messages.WaitTimerResponse, error] {
	return func(yield func(*messages.WaitTimerResponse, error) bool) {
		var e wakebell.Ending
		var err error
		if m.GetReport() {
			e.Report, err = o.client().Report(ctx, m.GetTopic(), m.GetId())
		} else {
			e, err = o.client().Wait(ctx, m.GetTopic(), m.GetId())
		}
		yield(wire.EndingMessage(e), err)
	}
}
