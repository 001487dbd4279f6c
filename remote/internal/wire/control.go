package wire

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell/internal/text"
	fields "github.com/wakebell/wakebell/internal/wire"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/wakebelltype"
)

// ControlMessage converts the cluster-wide settings of a topic to a message.
func ControlMessage(c wakebelltype.Control) *messages.TopicControl {
	return &messages.TopicControl{
		Paused: c.Paused, PausedAt: fields.Timestamp(c.PausedAt), PausedBy: text.Valid(c.PausedBy), Reason: text.Valid(c.Reason),
		Settings: SettingsMessage(c.Settings),
	}
}

// ControlOf is the inverse of ControlMessage.
func ControlOf(m *messages.TopicControl) wakebelltype.Control {
	return wakebelltype.Control{
		Paused: m.GetPaused(), PausedAt: fields.Time(m.GetPausedAt()), PausedBy: m.GetPausedBy(), Reason: m.GetReason(),
		Settings: SettingsOf(m.GetSettings()),
	}
}

// SettingsMessage converts the settings of a topic to a message.
func SettingsMessage(s wakebelltype.Settings) *messages.TopicSettings {
	return &messages.TopicSettings{
		MaxConcurrent: fields.Count(s.MaxConcurrent), MaxAttempts: fields.Count(s.MaxAttempts),
		LeaseTtl: Span(s.LeaseTTL), MaxLeaseAge: Span(s.MaxLeaseAge),
		PollingInterval: Span(s.PollingInterval), MaxPollingInterval: Span(s.MaxPollingInterval),
		RetryInitial: Span(s.RetryInitial), RetryLimit: Span(s.RetryLimit),
	}
}

// SettingsOf is the inverse of SettingsMessage.
func SettingsOf(m *messages.TopicSettings) wakebelltype.Settings {
	return wakebelltype.Settings{
		MaxConcurrent: int(m.GetMaxConcurrent()), MaxAttempts: int(m.GetMaxAttempts()),
		LeaseTTL: m.GetLeaseTtl().AsDuration(), MaxLeaseAge: m.GetMaxLeaseAge().AsDuration(),
		PollingInterval: m.GetPollingInterval().AsDuration(), MaxPollingInterval: m.GetMaxPollingInterval().AsDuration(),
		RetryInitial: m.GetRetryInitial().AsDuration(), RetryLimit: m.GetRetryLimit().AsDuration(),
	}
}

// Span returns d as a field of a message, or nil if d is zero.
func Span(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}
