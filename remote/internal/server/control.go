package server

import (
	"context"

	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/wakebelltype"
)

func (o *operations) GetTopicControl(ctx context.Context, m *messages.GetTopicControlRequest) (*messages.GetTopicControlResponse, error) {
	control, err := o.client().Control(ctx, m.GetTopic())
	return &messages.GetTopicControlResponse{Control: wire.ControlMessage(control)}, err
}

func (o *operations) PauseTopic(ctx context.Context, m *messages.PauseTopicRequest) (*messages.PauseTopicResponse, error) {
	control, err := o.client().PauseUntil(ctx, m.GetTopic(), wakebelltype.Pause{
		By: m.GetBy(), Reason: m.GetReason(), For: m.GetDuration().AsDuration(), Until: convert.Time(m.GetUntil()),
	})
	return &messages.PauseTopicResponse{Control: wire.ControlMessage(control)}, err
}

func (o *operations) ResumeTopic(ctx context.Context, m *messages.ResumeTopicRequest) (*messages.ResumeTopicResponse, error) {
	control, err := o.client().Resume(ctx, m.GetTopic())
	return &messages.ResumeTopicResponse{Control: wire.ControlMessage(control)}, err
}

func (o *operations) RetuneTopic(ctx context.Context, m *messages.RetuneTopicRequest) (*messages.RetuneTopicResponse, error) {
	control, err := o.client().Retune(ctx, m.GetTopic(), wire.SettingsOf(m.GetSettings()))
	return &messages.RetuneTopicResponse{Control: wire.ControlMessage(control)}, err
}
