package wakebell

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/wakebell/wakebell/actors/gateway"
	"github.com/wakebell/wakebell/messages"
)

// guarded keeps what comes by message from putting timers into the topics of
// reminders: who is reminded would be the sender's choice, and a peer of another
// process may send to few actors of this one.
type guarded struct {
	gateway.Timers
	topic string
}

func (r *Reminders) guard(t gateway.Timers) gateway.Timers {
	g := guarded{t, DefaultRemindersTopic}
	if r.cfg != nil {
		g.topic = r.cfg.Topic
	}
	return g
}

// Do implements actors.Timers.
func (g guarded) Do(ctx context.Context, request messages.Request) messages.Answer {
	if !g.puts(request) {
		return g.Timers.Do(ctx, request)
	}
	refused := messages.Failure(messages.Code_CODE_INVALID, "topic: it is that of reminders, which SetReminder sets")
	refused.Request = request.GetRequest()
	return refused
}

// puts reports whether a request puts something into a topic of reminders.
func (g guarded) puts(request messages.Request) bool {
	switch m := request.(type) {
	case *messages.ScheduleRequest:
		return g.reserved(m.GetTopic())
	case *messages.ScheduleBatchRequest:
		return slices.ContainsFunc(m.GetTimers(), func(s *messages.ScheduleRequest) bool { return g.reserved(s.GetTopic()) })
	case *messages.CancelRequest, *messages.GetTimerRequest, *messages.ListTimersRequest, *messages.RescheduleRequest, *messages.RunNowRequest, *messages.GetTopicStatsRequest:
		return false // of what is there
	case *messages.PublishRequest:
		return false // into a queue
	default:
		return g.names(m.ProtoReflect())
	}
}

// names reports whether a message, or one in it, has such a topic.
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

func (g guarded) reserved(topic string) bool {
	rest, ok := strings.CutPrefix(topic, g.topic)
	return ok && (rest == "" || strings.HasPrefix(rest, remindersOfNodeAfter))
}
