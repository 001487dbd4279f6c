package remote

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
)

// scheduled is a ScheduleResponse or a RescheduleResponse.
type scheduled interface {
	GetId() string
	GetDue() *timestamppb.Timestamp
	GetOutcome() messages.Outcome
	GetFound() *timestamppb.Timestamp
}

func scheduledOf(m scheduled) wakebell.Scheduled {
	return wakebell.Scheduled{
		ID: m.GetId(), Due: instantOf(m.GetDue()),
		Outcome: wakebell.Outcome(m.GetOutcome()), Found: instantOf(m.GetFound()), //nolint:gosec // numbered alike
	}
}

func infoOf(topic string, t *messages.Timer) wakebell.Info {
	return wakebell.Info{
		ID: t.GetId(), Topic: topic, State: states[t.GetState()],
		Due: instantOf(t.GetDue()), Activation: instantOf(t.GetActivation()),
		Attempts: int(t.GetAttempts()), Failures: int(t.GetFailures()), LastError: t.GetLastError(),
	}
}
