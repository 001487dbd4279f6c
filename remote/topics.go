package remote

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/wakebelltype"
)

var _ wakebell.Operator = (*Client)(nil)

// Topics does what wakebell.Client.Topics does, for the topics whose names begin
// with the System's prefix. It yields the names without the prefix. If the link
// breaks, it ends with wakebell.ErrUnavailable.
func (c *Client) Topics(ctx context.Context, discover bool, p wakebelltype.Page) iter.Seq2[string, error] {
	request := &messages.ListTopicsRequest{Discover: discover, After: p.After, Limit: convert.Count(p.Limit)}
	return paging.Limited(p, wire.Each(list(ctx, c, rpc.OperationsClient.ListTopics, request), (*messages.ListTopicsResponse).GetTopic))
}

// Overview does what wakebell.Client.Overview does. It returns the names of the
// topics as they were given.
func (c *Client) Overview(ctx context.Context, topics ...string) ([]wakebelltype.Overview, error) {
	var all []wakebelltype.Overview
	for part := range slices.Chunk(topics, wire.MaxOverviews) {
		answer, err := operate(ctx, c, rpc.OperationsClient.GetOverviews, &messages.GetOverviewsRequest{Topics: part})
		if err != nil {
			return nil, err
		}
		for _, t := range answer.GetTopics() {
			of := wakebelltype.Overview{
				Topic: t.GetTopic(), Stats: wire.StatsOf(t.GetStats()), Control: wire.ControlOf(t.GetControl()),
				Nodes: int(t.GetNodes()), Shards: int(max(t.GetShards(), 1)), Division: t.GetDivision(),
				Reports: wire.ReportsOf(t.GetReports()), Damage: t.GetDamage(), Recent: wire.CountsOf(t.GetRecent(), time.Time{}),
			}
			if t.GetFault() != nil {
				of.Err = wakebell.AnswerError(t.GetFault())
			}
			all = append(all, of)
		}
	}
	return all, nil
}

// AskNodes does what wakebell.Client.AskNodes does, for 1,000 topics after each other.
func (c *Client) AskNodes(ctx context.Context, topics ...string) (answers []wakebelltype.NodeAnswer, err error) {
	var unasked wakebelltype.UnaskedError
	for part := range slices.Chunk(topics, wire.MaxOverviews) {
		answer, err := operate(ctx, c, rpc.OperationsClient.AskNodes, &messages.AskNodesRequest{Topics: part})
		if err != nil {
			return nil, err
		}
		if list := answer.GetUnasked(); len(list) > 0 {
			unasked.Topics, unasked.Err = append(unasked.Topics, list...), wakebell.AnswerError(answer.GetError())
		}
		for _, a := range answer.GetAnswers() {
			answers = append(answers, wakebelltype.NodeAnswer{Topic: a.GetTopic(), Node: a.GetNode(), State: wire.NodeStateOf(a.GetState())})
		}
	}
	if len(unasked.Topics) > 0 {
		return answers, &unasked
	}
	return answers, nil
}

// CancelAll does what wakebell.Client.CancelAll does. If the link breaks, it
// returns wakebell.ErrUnavailable, and timers may have been cancelled.
func (c *Client) CancelAll(ctx context.Context, topic string) (int64, error) {
	answer, err := once(ctx, c, rpc.OperationsClient.CancelAll, &messages.CancelAllRequest{Topic: topic})
	return answer.GetCount(), err
}

// Forget does what wakebell.Client.Forget does.
func (c *Client) Forget(ctx context.Context, topic string) error {
	_, err := operate(ctx, c, rpc.OperationsClient.ForgetTopic, &messages.ForgetTopicRequest{Topic: topic})
	return err
}

// RemoveTopic does what wakebell.Client.RemoveTopic does. If the link breaks, it is
// repeated and may report that the topic did not exist.
func (c *Client) RemoveTopic(ctx context.Context, topic string) (wakebelltype.TopicRemoval, error) {
	answer, err := operate(ctx, c, rpc.OperationsClient.RemoveTopic, &messages.RemoveTopicRequest{Topic: topic})
	return wakebelltype.TopicRemoval{Existed: answer.GetExisted(), Use: answer.GetUse()}, err
}

// Shards does what wakebell.Client.Shards does.
func (c *Client) Shards(ctx context.Context, topic string) (wakebelltype.ShardLayout, error) {
	answer, err := operate(ctx, c, rpc.OperationsClient.GetTopicShards, &messages.GetTopicShardsRequest{Topic: topic})
	return wire.ShardsOf(answer.GetShards()), err
}

// Divide does what wakebell.Client.Divide does.
func (c *Client) Divide(ctx context.Context, topic string, shards int) (wakebelltype.ShardLayout, error) {
	request := &messages.DivideTopicRequest{Topic: topic, Shards: convert.Count(shards)}
	answer, err := operate(ctx, c, rpc.OperationsClient.DivideTopic, request)
	return wire.ShardsOf(answer.GetShards()), err
}

// Reshard does what wakebell.Client.Reshard does. If the link breaks, it ends with
// wakebell.ErrUnavailable; calling it again continues.
func (c *Client) Reshard(ctx context.Context, topic string, shards int) iter.Seq2[wakebelltype.Resharding, error] {
	request := &messages.ReshardTopicRequest{Topic: topic, Shards: convert.Count(shards)}
	return wire.Each(list(ctx, c, rpc.OperationsClient.ReshardTopic, request), func(m *messages.ReshardTopicResponse) wakebelltype.Resharding {
		return wakebelltype.Resharding{Layout: wire.ShardsOf(m.GetShards()), Moved: m.GetMoved(), Left: m.GetLeft(), Done: m.GetDone()}
	})
}

// Diagnose does what wakebell.Client.Diagnose does, from the node. The findings
// contain no addresses: the masters of a Cluster are numbered.
func (c *Client) Diagnose(ctx context.Context, topics ...string) ([]wakebelltype.Finding, error) {
	answer, err := operate(ctx, c, rpc.OperationsClient.Diagnose, &messages.DiagnoseRequest{Topics: topics})
	if err != nil {
		return nil, err
	}
	found := make([]wakebelltype.Finding, len(answer.GetFindings()))
	for i, f := range answer.GetFindings() {
		found[i] = wakebelltype.Finding{
			Check: f.GetCheck(), Server: f.GetServer(), Topic: f.GetTopic(), Grade: wakebelltype.Grade(f.GetGrade()), Found: f.GetFound(), Do: f.GetDo(),
		}
	}
	return found, nil
}
