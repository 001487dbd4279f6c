package wire

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/wakebell/wakebell/messages"
)

// kinds are the fields of a oneof named kind, by the full names of their messages.
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

// put sets the oneof to a message. It returns false if the oneof has no field for
// it.
func (k kinds) put(into, m proto.Message) bool {
	field := k[proto.MessageName(m)]
	if field == nil {
		return false
	}
	into.ProtoReflect().Set(field, protoreflect.ValueOfMessage(m.ProtoReflect()))
	return true
}

// chosen returns the message that the oneof holds, or nil.
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

// ReplyOf wraps a message for a session, or returns nil if sessions do not receive
// it. The most frequent messages avoid reflection, here and below.
func ReplyOf(message any) *messages.Reply {
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

// CommandOf wraps a message to the gateway, the subscriptions or the gates.
func CommandOf(m proto.Message) *messages.Command {
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

// Commanded returns the message inside a command, or nil if it is unknown.
func Commanded(c *messages.Command) proto.Message {
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

// Inside returns the message inside a reply, or nil.
func Inside(r *messages.Reply) proto.Message {
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
