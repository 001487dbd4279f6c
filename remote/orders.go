package remote

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
)

func getOrders(ctx context.Context, o *operations, m *messages.GetOrders) (*messages.Orders, error) {
	ordered, err := o.client().Control(ctx, m.GetTopic())
	return ordersMessage(ordered), err
}

// Control is that of wakebell.Client.
func (c *Client) Control(ctx context.Context, topic string) (wakebell.Control, error) {
	answer, err := operate[messages.Orders](ctx, c, &messages.GetOrders{Topic: topic})
	return controlOf(answer), err
}

func pauseTopic(ctx context.Context, o *operations, m *messages.PauseTopic) (*messages.Orders, error) {
	ordered, err := o.client().Pause(ctx, m.GetTopic(), m.GetBy(), m.GetReason())
	return ordersMessage(ordered), err
}

// Pause is that of wakebell.Client.
func (c *Client) Pause(ctx context.Context, topic, by, reason string) (wakebell.Control, error) {
	answer, err := operate[messages.Orders](ctx, c, &messages.PauseTopic{Topic: topic, By: by, Reason: reason})
	return controlOf(answer), err
}

func resumeTopic(ctx context.Context, o *operations, m *messages.ResumeTopic) (*messages.Orders, error) {
	ordered, err := o.client().Resume(ctx, m.GetTopic())
	return ordersMessage(ordered), err
}

// Resume is that of wakebell.Client.
func (c *Client) Resume(ctx context.Context, topic string) (wakebell.Control, error) {
	answer, err := operate[messages.Orders](ctx, c, &messages.ResumeTopic{Topic: topic})
	return controlOf(answer), err
}

func retuneTopic(ctx context.Context, o *operations, m *messages.RetuneTopic) (*messages.Orders, error) {
	ordered, err := o.client().Retune(ctx, m.GetTopic(), settingsOf(m.GetSettings()))
	return ordersMessage(ordered), err
}

// Retune is that of wakebell.Client.
func (c *Client) Retune(ctx context.Context, topic string, s wakebell.Settings) (wakebell.Control, error) {
	if err := s.Validate(); err != nil { // which also tells what the wire cannot
		return wakebell.Control{}, err
	}
	answer, err := operate[messages.Orders](ctx, c, &messages.RetuneTopic{Topic: topic, Settings: settingsMessage(s)})
	return controlOf(answer), err
}

func ordersMessage(c wakebell.Control) *messages.Orders {
	return &messages.Orders{
		Paused: c.Paused, PausedAt: timestamp(c.PausedAt), PausedBy: text(c.PausedBy), Reason: text(c.Reason),
		Settings: settingsMessage(c.Settings),
	}
}

func controlOf(m *messages.Orders) wakebell.Control {
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
