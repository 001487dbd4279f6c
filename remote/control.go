package remote

import (
	"context"
	"fmt"

	"github.com/wakebell/wakebell/internal/convert"
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
	return c.PauseUntil(ctx, topic, wakebelltype.Pause{By: by, Reason: reason})
}

// PauseUntil does what wakebell.Client.PauseUntil does. If the node is of an earlier version,
// the topic is paused until Resume, and the error says so.
func (c *Client) PauseUntil(ctx context.Context, topic string, p wakebelltype.Pause) (wakebelltype.Control, error) {
	answer, err := operate(ctx, c, rpc.OperationsClient.PauseTopic, &messages.PauseTopicRequest{
		Topic: topic, By: p.By, Reason: p.Reason, Duration: wire.Span(p.For), Until: convert.Timestamp(p.Until),
	})
	control := wire.ControlOf(answer.GetControl())
	if ends := p.For != 0 || !p.Until.IsZero(); err == nil && ends && control.PausedUntil.IsZero() {
		err = fmt.Errorf("pause %q: the node does not know pauses that end by themselves; the topic is paused until resume", topic)
	}
	return control, err
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
