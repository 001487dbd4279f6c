package remote

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
)

func (o *operations) GetTopicControl(ctx context.Context, m *messages.GetTopicControlRequest) (*messages.GetTopicControlResponse, error) {
	control, err := o.client().Control(ctx, m.GetTopic())
	return &messages.GetTopicControlResponse{Control: controlMessage(control)}, err
}

// Control is that of wakebell.Client.
func (c *Client) Control(ctx context.Context, topic string) (wakebell.Control, error) {
	answer, err := operate(ctx, c, rpc.OperationsClient.GetTopicControl, &messages.GetTopicControlRequest{Topic: topic})
	return controlOf(answer.GetControl()), err
}

func (o *operations) PauseTopic(ctx context.Context, m *messages.PauseTopicRequest) (*messages.PauseTopicResponse, error) {
	control, err := o.client().Pause(ctx, m.GetTopic(), m.GetBy(), m.GetReason())
	return &messages.PauseTopicResponse{Control: controlMessage(control)}, err
}

// Pause is that of wakebell.Client.
func (c *Client) Pause(ctx context.Context, topic, by, reason string) (wakebell.Control, error) {
	answer, err := operate(ctx, c, rpc.OperationsClient.PauseTopic, &messages.PauseTopicRequest{Topic: topic, By: by, Reason: reason})
	return controlOf(answer.GetControl()), err
}

func (o *operations) ResumeTopic(ctx context.Context, m *messages.ResumeTopicRequest) (*messages.ResumeTopicResponse, error) {
	control, err := o.client().Resume(ctx, m.GetTopic())
	return &messages.ResumeTopicResponse{Control: controlMessage(control)}, err
}

// Resume is that of wakebell.Client.
func (c *Client) Resume(ctx context.Context, topic string) (wakebell.Control, error) {
	answer, err := operate(ctx, c, rpc.OperationsClient.ResumeTopic, &messages.ResumeTopicRequest{Topic: topic})
	return controlOf(answer.GetControl()), err
}

func (o *operations) RetuneTopic(ctx context.Context, m *messages.RetuneTopicRequest) (*messages.RetuneTopicResponse, error) {
	control, err := o.client().Retune(ctx, m.GetTopic(), settingsOf(m.GetSettings()))
	return &messages.RetuneTopicResponse{Control: controlMessage(control)}, err
}

// Retune is that of wakebell.Client.
func (c *Client) Retune(ctx context.Context, topic string, s wakebell.Settings) (wakebell.Control, error) {
	if err := s.Validate(); err != nil { // which also tells what the wire cannot
		return wakebell.Control{}, err
	}
	answer, err := operate(ctx, c, rpc.OperationsClient.RetuneTopic, &messages.RetuneTopicRequest{Topic: topic, Settings: settingsMessage(s)})
	return controlOf(answer.GetControl()), err
}

func controlMessage(c wakebell.Control) *messages.TopicControl {
	return &messages.TopicControl{
		Paused: c.Paused, PausedAt: timestamp(c.PausedAt), PausedBy: text(c.PausedBy), Reason: text(c.Reason),
		Settings: settingsMessage(c.Settings),
	}
}

func controlOf(m *messages.TopicControl) wakebell.Control {
	return wakebell.Control{
		Paused: m.GetPaused(), PausedAt: instantOf(m.GetPausedAt()), PausedBy: m.GetPausedBy(), Reason: m.GetReason(),
		Settings: settingsOf(m.GetSettings()),
	}
}

func settingsMessage(s wakebell.Settings) *messages.TopicSettings {
	return &messages.TopicSettings{
		MaxConcurrent: count(s.MaxConcurrent), MaxAttempts: count(s.MaxAttempts),
		LeaseTtl: span(s.LeaseTTL), MaxLeaseAge: span(s.MaxLeaseAge),
		PollingInterval: span(s.PollingInterval), MaxPollingInterval: span(s.MaxPollingInterval),
		RetryInitial: span(s.RetryInitial), RetryLimit: span(s.RetryLimit),
	}
}

func settingsOf(m *messages.TopicSettings) wakebell.Settings {
	return wakebell.Settings{
		MaxConcurrent: int(m.GetMaxConcurrent()), MaxAttempts: int(m.GetMaxAttempts()),
		LeaseTTL: m.GetLeaseTtl().AsDuration(), MaxLeaseAge: m.GetMaxLeaseAge().AsDuration(),
		PollingInterval: m.GetPollingInterval().AsDuration(), MaxPollingInterval: m.GetMaxPollingInterval().AsDuration(),
		RetryInitial: m.GetRetryInitial().AsDuration(), RetryLimit: m.GetRetryLimit().AsDuration(),
	}
}

// span is a duration, or absent where it is zero.
func span(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}
