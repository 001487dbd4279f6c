package remote

import (
	"context"
	"iter"
	"slices"
	"strings"

	"google.golang.org/grpc"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
)

var _ wakebell.Operator = (*Client)(nil)

// bare is the name of a topic without the System's prefix; false: it is not one
// of the System's.
func (o *operations) bare(topic string) (string, bool) {
	name, ours := strings.CutPrefix(topic, o.client().Prefix())
	return name, ours && name != ""
}

func (o *operations) ListTopics(m *messages.ListTopicsRequest, stream grpc.ServerStreamingServer[messages.ListTopicsResponse]) error {
	return listing(o, m, stream, o.listTopics)
}

func (o *operations) listTopics(ctx context.Context, m *messages.ListTopicsRequest) iter.Seq2[*messages.ListTopicsResponse, error] {
	return func(yield func(*messages.ListTopicsResponse, error) bool) {
		for full, err := range o.client().Topics(ctx, m.GetDiscover()) {
			name, ours := o.bare(full)
			if err == nil && (!ours || !o.sees(ctx, KindTopic, name)) {
				continue
			}
			if !yield(&messages.ListTopicsResponse{Topic: text(name)}, err) {
				return
			}
		}
	}
}

// Topics is that of wakebell.Client, of those topics that begin with the
// System's prefix, without it.
func (c *Client) Topics(ctx context.Context, discover bool) iter.Seq2[string, error] {
	return each(list(ctx, c, rpc.OperationsClient.ListTopics, &messages.ListTopicsRequest{Discover: discover}), (*messages.ListTopicsResponse).GetTopic)
}

// maxOverviews is how many topics a request is about.
const maxOverviews = 1000

func (o *operations) GetOverviews(ctx context.Context, m *messages.GetOverviewsRequest) (*messages.GetOverviewsResponse, error) {
	if len(m.GetTopics()) > maxOverviews {
		return nil, invalid("topics", "%d, at most %d", len(m.GetTopics()), maxOverviews)
	}
	all, err := o.client().Overview(ctx, m.GetTopics()...)
	if err != nil {
		return nil, err
	}
	answer := &messages.GetOverviewsResponse{}
	for i, of := range all {
		t := &messages.TopicOverview{Topic: m.GetTopics()[i], Stats: wakebell.StatsMessage(of.Stats), Control: controlMessage(of.Control)}
		if of.Err != nil {
			t.Fault = errorOf(ctx, of.Err)
		}
		answer.Topics = append(answer.Topics, t)
	}
	return answer, nil
}

// Overview is that of wakebell.Client. Topics are named as they were asked for.
func (c *Client) Overview(ctx context.Context, topics ...string) ([]wakebell.Overview, error) {
	var all []wakebell.Overview
	for part := range slices.Chunk(topics, maxOverviews) {
		answer, err := operate(ctx, c, rpc.OperationsClient.GetOverviews, &messages.GetOverviewsRequest{Topics: part})
		if err != nil {
			return nil, err
		}
		for _, t := range answer.GetTopics() {
			of := wakebell.Overview{Topic: t.GetTopic(), Stats: statsOf(t.GetStats()), Control: controlOf(t.GetControl())}
			if t.GetFault() != nil {
				of.Err = wakebell.AnswerError(t.GetFault())
			}
			all = append(all, of)
		}
	}
	return all, nil
}

// Count is that of wakebell.Client.
func (c *Client) Count(ctx context.Context, topic string) (wakebell.Counts, error) {
	st, err := c.Stats(ctx, topic)
	if err != nil {
		return wakebell.Counts{}, err
	}
	return wakebell.Counts{Total: st.Total, Due: st.Due, Dead: st.Dead}, nil
}

func (o *operations) CancelAll(ctx context.Context, m *messages.CancelAllRequest) (*messages.CancelAllResponse, error) {
	n, err := o.client().CancelAll(ctx, m.GetTopic())
	return &messages.CancelAllResponse{Count: n}, err
}

// CancelAll is that of wakebell.Client. When the link breaks it fails with
// wakebell.ErrUnavailable, and nobody knows.
func (c *Client) CancelAll(ctx context.Context, topic string) (int64, error) {
	answer, err := once(ctx, c, rpc.OperationsClient.CancelAll, &messages.CancelAllRequest{Topic: topic})
	return answer.GetCount(), err
}

func (o *operations) ForgetTopic(ctx context.Context, m *messages.ForgetTopicRequest) (*messages.ForgetTopicResponse, error) {
	return &messages.ForgetTopicResponse{}, o.client().Forget(ctx, m.GetTopic())
}

// Forget is that of wakebell.Client.
func (c *Client) Forget(ctx context.Context, topic string) error {
	_, err := operate(ctx, c, rpc.OperationsClient.ForgetTopic, &messages.ForgetTopicRequest{Topic: topic})
	return err
}

func (o *operations) Diagnose(ctx context.Context, m *messages.DiagnoseRequest) (*messages.DiagnoseResponse, error) {
	found, err := o.client().Diagnose(ctx, m.GetTopics()...)
	if err != nil {
		return nil, err
	}
	answer := &messages.DiagnoseResponse{}
	for _, f := range o.guard.findings(found) {
		topic, _ := o.bare(f.Topic)
		answer.Findings = append(answer.Findings, &messages.Finding{
			Check: f.Check, Server: text(f.Server), Topic: text(topic), Grade: string(f.Grade), Found: text(f.Found), Do: text(f.Do),
		})
	}
	return answer, nil
}

// Diagnose is that of wakebell.Client, as the node sees its Redis. It tells no
// addresses: the masters of a Cluster have numbers.
func (c *Client) Diagnose(ctx context.Context, topics ...string) ([]wakebell.Finding, error) {
	answer, err := operate(ctx, c, rpc.OperationsClient.Diagnose, &messages.DiagnoseRequest{Topics: topics})
	if err != nil {
		return nil, err
	}
	found := make([]wakebell.Finding, len(answer.GetFindings()))
	for i, f := range answer.GetFindings() {
		found[i] = wakebell.Finding{
			Check: f.GetCheck(), Server: f.GetServer(), Topic: f.GetTopic(), Grade: wakebell.Grade(f.GetGrade()), Found: f.GetFound(), Do: f.GetDo(),
		}
	}
	return found, nil
}
