package remote

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
)

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
