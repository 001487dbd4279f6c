package remote

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/wakebell/wakebell/messages"
)

// chosen is the message that a oneof has; nil: none.
func chosen(m proto.Message, oneof protoreflect.Name) proto.Message {
	if m == nil || !m.ProtoReflect().IsValid() {
		return nil
	}
	r := m.ProtoReflect()
	field := r.WhichOneof(r.Descriptor().Oneofs().ByName(oneof))
	if field == nil {
		return nil
	}
	return r.Get(field).Message().Interface()
}

// replyOf wraps what is for a session; nil: it is not for it.
func replyOf(message any) *messages.Reply {
	switch m := message.(type) {
	case *messages.Error:
		return &messages.Reply{Kind: &messages.Reply_Error{Error: m}}
	case *messages.Scheduled:
		return &messages.Reply{Kind: &messages.Reply_Scheduled{Scheduled: m}}
	case *messages.BatchScheduled:
		return &messages.Reply{Kind: &messages.Reply_BatchScheduled{BatchScheduled: m}}
	case *messages.Cancelled:
		return &messages.Reply{Kind: &messages.Reply_Cancelled{Cancelled: m}}
	case *messages.Timer:
		return &messages.Reply{Kind: &messages.Reply_Timer{Timer: m}}
	case *messages.TimerPage:
		return &messages.Reply{Kind: &messages.Reply_Timers{Timers: m}}
	case *messages.DueNow:
		return &messages.Reply{Kind: &messages.Reply_DueNow{DueNow: m}}
	case *messages.TopicStats:
		return &messages.Reply{Kind: &messages.Reply_TopicStats{TopicStats: m}}
	case *messages.Subscribed:
		return &messages.Reply{Kind: &messages.Reply_Subscribed{Subscribed: m}}
	case *messages.Unsubscribed:
		return &messages.Reply{Kind: &messages.Reply_Unsubscribed{Unsubscribed: m}}
	case *messages.Leases:
		return &messages.Reply{Kind: &messages.Reply_Leases{Leases: m}}
	case *messages.LeasesEnded:
		return &messages.Reply{Kind: &messages.Reply_LeasesEnded{LeasesEnded: m}}
	default:
		return nil
	}
}

// commandOf wraps what is for the gateway; nil: it is not for it.
func commandOf(message any) *messages.Command {
	switch m := message.(type) {
	case *messages.Schedule:
		return &messages.Command{Kind: &messages.Command_Schedule{Schedule: m}}
	case *messages.ScheduleBatch:
		return &messages.Command{Kind: &messages.Command_ScheduleBatch{ScheduleBatch: m}}
	case *messages.Cancel:
		return &messages.Command{Kind: &messages.Command_Cancel{Cancel: m}}
	case *messages.Get:
		return &messages.Command{Kind: &messages.Command_Get{Get: m}}
	case *messages.List:
		return &messages.Command{Kind: &messages.Command_List{List: m}}
	case *messages.Reschedule:
		return &messages.Command{Kind: &messages.Command_Reschedule{Reschedule: m}}
	case *messages.RunNow:
		return &messages.Command{Kind: &messages.Command_RunNow{RunNow: m}}
	case *messages.Stats:
		return &messages.Command{Kind: &messages.Command_Stats{Stats: m}}
	case *messages.Subscribe:
		return &messages.Command{Kind: &messages.Command_Subscribe{Subscribe: m}}
	case *messages.Unsubscribe:
		return &messages.Command{Kind: &messages.Command_Unsubscribe{Unsubscribe: m}}
	case *messages.Verdicts:
		return &messages.Command{Kind: &messages.Command_Verdicts{Verdicts: m}}
	default:
		return nil
	}
}
