package remote

import (
	"iter"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
)

func instantOf(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

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

var states = map[messages.State]wakebell.State{
	messages.State_STATE_PENDING:  wakebell.StatePending,
	messages.State_STATE_RETRYING: wakebell.StateRetrying,
	messages.State_STATE_RUNNING:  wakebell.StateRunning,
	messages.State_STATE_NEVER:    wakebell.StateNever,
}

func contentOf(c *messages.Content) wakebell.Content {
	content := wakebell.Content{
		CorrelationID: c.GetCorrelationId(), ContentType: c.GetContentType(), ReplyTo: c.GetReplyTo(), Body: c.GetBody(),
	}
	for _, key := range slices.Sorted(maps.Keys(c.GetHeaders())) {
		content.Headers = append(content.Headers, wakebell.Headers{{Key: key, Value: c.GetHeaders()[key]}}...)
	}
	return content
}

// timestamp is t, or absent where it is zero.
func timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// count is a count that fits the wire.
func count(n int) uint32 { return uint32(min(max(n, 0), 1<<31)) } //nolint:gosec // bounded

// each makes others of what a list yields.
func each[A, B any](all iter.Seq2[A, error], made func(A) B) iter.Seq2[B, error] {
	return func(yield func(B, error) bool) {
		for a, err := range all {
			if err != nil {
				var none B
				yield(none, err)
				return
			}
			if !yield(made(a), nil) {
				return
			}
		}
	}
}

func statsOf(m *messages.TopicStats) wakebell.Stats {
	return wakebell.Stats{
		Total: m.GetTotal(), Pending: m.GetPending(), Due: m.GetDue(), Leased: m.GetLeased(), Retrying: m.GetRetrying(), Dead: m.GetDead(),
		Estimated: m.GetEstimated(), OldestDue: instantOf(m.GetOldestDue()), Lag: m.GetLag().AsDuration(),
		Paused: m.GetPausedAt() != nil, PausedAt: instantOf(m.GetPausedAt()),
	}
}
