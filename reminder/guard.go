package reminder

import (
	"context"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/wakebell/wakebell/actors/gateway"
	"github.com/wakebell/wakebell/messages"
)

// guarded refuses requests that schedule timers on the topics of reminders: the
// sender could choose any recipient, and a peer may send to few actors of this
// process.
type guarded struct {
	gateway.Timers
	reserved func(topic string) bool
}

// Do implements gateway.Timers.
func (g guarded) Do(ctx context.Context, request messages.Request) messages.Answer {
	if !g.puts(request) {
		return g.Timers.Do(ctx, request)
	}
	refused := messages.Failure(messages.Code_CODE_INVALID, "topic: it is that of reminders; use SetReminder")
	refused.Request = request.GetRequest()
	return refused
}

// puts reports whether a request schedules on a topic of reminders.
func (g guarded) puts(request messages.Request) bool {
	switch m := request.(type) {
	case *messages.ScheduleRequest:
		return g.reserved(m.GetTopic())
	case *messages.ScheduleBatchRequest:
		return slices.ContainsFunc(m.GetTimers(), func(s *messages.ScheduleRequest) bool { return g.reserved(s.GetTopic()) })
	case *messages.CancelRequest, *messages.GetTimerRequest, *messages.ListTimersRequest, *messages.RescheduleRequest, *messages.RunNowRequest, *messages.GetTopicStatsRequest:
		return false // of stored timers
	case *messages.PublishRequest:
		return false // to a queue
	default:
		return g.names(m.ProtoReflect())
	}
}

// names reports whether a message, or one in it, names such a topic.
func (g guarded) names(m protoreflect.Message) (found bool) {
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.IsMap():
		case field.IsList() && field.Message() != nil:
			for i := range value.List().Len() {
				found = found || g.names(value.List().Get(i).Message())
			}
		case field.Message() != nil && !field.IsList():
			found = g.names(value.Message())
		case field.Name() == "topic" && field.Kind() == protoreflect.StringKind:
			found = g.reserved(value.String())
		}
		return !found
	})
	return found
}

// reserves reports whether a topic is one of reminders: of this System's, or with the default
// name, which other nodes of the same Redis may have.
func (r *Reminders) reserves(topic string) bool {
	return isReminderTopic(DefaultTopic, topic) || (r.cfg != nil && isReminderTopic(r.cfg.Topic, topic))
}
