package remote

import (
	"context"

	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Control does what wakebell.Client.Control does.
func (c *Client) Control(ctx context.Context, topic string) (wakebelltype.Control, error) {
	answer, err := operate(ctx, c, rpc.OperationsClient.GetTopicControl, &messages.GetTopicControlRequest{Topic: topic})
	return wire.ControlOf(answer.GetControl()), err
}

// Pause does what wakebell.Client.Pause does.
func (c *Client) Pause(ctx context.Context, topic, by, reason string) (wakebelltype.Control, error) {
	answer, err := operate(ctx, c, rpc.OperationsClient.PauseTopic, &messages.PauseTopicRequest{Topic: topic, By: by, Reason: reason})
	return wire.ControlOf(answer.GetControl()), err
}

// Resume does what wakebell.Client.Resume does.
func (c *Client) Resume(ctx context.Context, topic string) (wakebelltype.Control, error) {
	answer, err := operate(ctx, c, rpc.OperationsClient.ResumeTopic, &messages.ResumeTopicRequest{Topic: topic})
	return wire.ControlOf(answer.GetControl()), err
}

// Retune does what wakebell.Client.Retune does.
func (c *Client) Retune(ctx context.Context, topic string, s wakebelltype.Settings) (wakebelltype.Control, error) {
	if err := tuning.Check(s); err != nil { // also rejects values that the message cannot represent
		return wakebelltype.Control{}, err
	}
	answer, err := operate(ctx, c, rpc.OperationsClient.RetuneTopic, &messages.RetuneTopicRequest{Topic: topic, Settings: wire.SettingsMessage(s)})
	return wire.ControlOf(answer.GetControl()), err
}
