package wire

import (
	"iter"
	"maps"
	"slices"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/wakebelltype"
)

// States maps the states of timers in messages to wakebell.State.
var States = map[messages.State]wakebell.State{
	messages.State_STATE_PENDING:  wakebell.StatePending,
	messages.State_STATE_RETRYING: wakebell.StateRetrying,
	messages.State_STATE_RUNNING:  wakebell.StateRunning,
	messages.State_STATE_NEVER:    wakebell.StateNever,
	messages.State_STATE_PARKED:   wakebell.StateParked,
}

// ContentOf converts the content of a timer or dead letter.
func ContentOf(c *messages.Content) wakebell.Content {
	content := wakebell.Content{
		CorrelationID: c.GetCorrelationId(), ContentType: c.GetContentType(), ReplyTo: c.GetReplyTo(), Body: c.GetBody(),
	}
	for _, key := range slices.Sorted(maps.Keys(c.GetHeaders())) {
		content.Headers = append(content.Headers, wakebell.Headers{{Key: key, Value: c.GetHeaders()[key]}}...)
	}
	return content
}

// Each returns a sequence of converted values. It ends after the first error.
func Each[A, B any](all iter.Seq2[A, error], made func(A) B) iter.Seq2[B, error] {
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

// StatsOf is the inverse of gateway.StatsMessage.
func StatsOf(m *messages.TopicStats) wakebelltype.Stats {
	return wakebelltype.Stats{
		Total: m.GetTotal(), Pending: m.GetPending(), Due: m.GetDue(), Leased: m.GetLeased(), Retrying: m.GetRetrying(), Parked: m.GetParked(), Dead: m.GetDead(),
		Estimated: m.GetEstimated(), OldestDue: convert.Time(m.GetOldestDue()), Lag: m.GetLag().AsDuration(),
		Paused: m.GetPausedAt() != nil, PausedAt: convert.Time(m.GetPausedAt()), PausedUntil: convert.Time(m.GetPausedUntil()),
	}
}

// AnswerOf returns the delivery of a verdict, and the message with which an actor
// would settle it.
func AnswerOf(v *messages.Verdict) (delivery uint64, answer any) {
	switch k := v.GetKind().(type) {
	case *messages.Verdict_Ack:
		return k.Ack.GetDelivery(), k.Ack
	case *messages.Verdict_Nack:
		return k.Nack.GetDelivery(), k.Nack
	case *messages.Verdict_Reject:
		return k.Reject.GetDelivery(), k.Reject
	case *messages.Verdict_Release:
		return k.Release.GetDelivery(), k.Release
	case *messages.Verdict_Extend:
		return k.Extend.GetDelivery(), k.Extend
	default:
		return 0, nil
	}
}
