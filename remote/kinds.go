package remote

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/wakebell/wakebell/messages"
)

// kinds are the messages that a oneof called kind takes, by their full names.
type kinds map[protoreflect.FullName]protoreflect.FieldDescriptor

var (
	commandKinds = kindsOf(&messages.Command{})
	replyKinds   = kindsOf(&messages.Reply{})
)

func kindsOf(m proto.Message) kinds {
	all := kinds{}
	fields := m.ProtoReflect().Descriptor().Oneofs().ByName("kind").Fields()
	for i := range fields.Len() {
		all[fields.Get(i).Message().FullName()] = fields.Get(i)
	}
	return all
}

// put puts a message in its oneof; false: it is not for it.
func (k kinds) put(into, m proto.Message) bool {
	field := k[proto.MessageName(m)]
	if field == nil {
		return false
	}
	into.ProtoReflect().Set(field, protoreflect.ValueOfMessage(m.ProtoReflect()))
	return true
}

// chosen is the message that the oneof has; nil: none.
func chosen(m proto.Message) proto.Message {
	r := m.ProtoReflect()
	if !r.IsValid() {
		return nil
	}
	field := r.WhichOneof(r.Descriptor().Oneofs().ByName("kind"))
	if field == nil {
		return nil
	}
	return r.Get(field).Message().Interface()
}

// replyOf wraps what is for a session; nil: it is not for it. What comes by the
// thousand goes without reflection, here and below.
func replyOf(message any) *messages.Reply {
	switch m := message.(type) {
	case *messages.ScheduleResponse:
		return &messages.Reply{Kind: &messages.Reply_Schedule{Schedule: m}}
	case *messages.Leases:
		return &messages.Reply{Kind: &messages.Reply_Leases{Leases: m}}
	case proto.Message:
		if reply := new(messages.Reply); replyKinds.put(reply, m) {
			return reply
		}
	}
	return nil
}

// commandOf wraps what is for the gateway, the subscriptions or the gates.
func commandOf(m proto.Message) *messages.Command {
	command := new(messages.Command)
	switch m := m.(type) {
	case *messages.ScheduleRequest:
		command.Kind = &messages.Command_Schedule{Schedule: m}
	case *messages.Verdicts:
		command.Kind = &messages.Command_Verdicts{Verdicts: m}
	default:
		commandKinds.put(command, m)
	}
	return command
}

// commanded is what is inside a command; nil: nothing that is known.
func commanded(c *messages.Command) proto.Message {
	switch k := c.GetKind().(type) {
	case *messages.Command_Schedule:
		if k.Schedule != nil {
			return k.Schedule
		}
	case *messages.Command_Verdicts:
		if k.Verdicts != nil {
			return k.Verdicts
		}
	}
	return chosen(c)
}

// inside is what is inside a reply.
func inside(r *messages.Reply) proto.Message {
	switch k := r.GetKind().(type) {
	case *messages.Reply_Schedule:
		if k.Schedule != nil {
			return k.Schedule
		}
	case *messages.Reply_Leases:
		if k.Leases != nil {
			return k.Leases
		}
	}
	return chosen(r)
}
