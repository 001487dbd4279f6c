package remote

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/wakebelltype"
)

// scheduled is a ScheduleResponse or a RescheduleResponse.
type scheduled interface {
	GetId() string
	GetDue() *timestamppb.Timestamp
	GetOutcome() messages.Outcome
	GetFound() *timestamppb.Timestamp
}

// scheduledOf converts the answer to a schedule or reschedule request.
func scheduledOf(m scheduled) wakebelltype.Scheduled {
	return wakebelltype.Scheduled{
		ID: m.GetId(), Due: convert.Time(m.GetDue()),
		Outcome: wakebelltype.Outcome(m.GetOutcome()), Found: convert.Time(m.GetFound()), //nolint:gosec // numbered alike
	}
}

// infoOf converts a timer of a topic.
func infoOf(topic string, t *messages.Timer) wakebell.Info {
	return wakebell.Info{
		ID: t.GetId(), Topic: topic, State: wire.States[t.GetState()],
		Due: convert.Time(t.GetDue()), Activation: convert.Time(t.GetActivation()),
		Attempts: int(t.GetAttempts()), Failures: int(t.GetFailures()), LastError: t.GetLastError(), Cursor: t.GetCursor(),
		Key: string(t.GetKey()),
	}
}
