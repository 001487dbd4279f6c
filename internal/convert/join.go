package convert

import (
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/wakebelltype"
)

// PartMessages converts parts of joins to messages.
func PartMessages(parts []wakebelltype.Part) []*messages.TimerPart {
	if len(parts) == 0 {
		return nil
	}
	all := make([]*messages.TimerPart, len(parts))
	for i, p := range parts {
		all[i] = &messages.TimerPart{Topic: p.Topic, Id: p.ID}
	}
	return all
}

// Parts is the inverse of PartMessages.
func Parts(all []*messages.TimerPart) []wakebelltype.Part {
	parts := make([]wakebelltype.Part, len(all))
	for i, p := range all {
		parts[i] = wakebelltype.Part{Topic: p.GetTopic(), ID: p.GetId()}
	}
	return parts
}

// PartEndMessage converts how a part has ended to a message, without its result.
func PartEndMessage(e wakebelltype.PartEnd) *messages.PartEnd {
	return &messages.PartEnd{
		Part: &messages.TimerPart{Topic: text.Valid(e.Topic), Id: text.Valid(e.ID)},
		End:  string(e.End), Reason: text.Valid(e.Reason), At: Timestamp(e.At), Cursor: e.Cursor,
	}
}

// PartEndOf is the inverse of PartEndMessage.
func PartEndOf(m *messages.PartEnd) wakebelltype.PartEnd {
	return wakebelltype.PartEnd{
		Part: wakebelltype.Part{Topic: m.GetPart().GetTopic(), ID: m.GetPart().GetId()},
		End:  wakebelltype.End(m.GetEnd()), Reason: m.GetReason(), At: Time(m.GetAt()), Cursor: m.GetCursor(),
	}
}

// JoinMessage converts the state of a join to a message.
func JoinMessage(j wakebelltype.Join) *messages.Join {
	return &messages.Join{Open: j.Open, Parts: j.Parts, Done: j.Done, Dead: j.Dead, Cancelled: j.Cancelled, Missing: j.Missing}
}

// JoinOf is the inverse of JoinMessage.
func JoinOf(m *messages.Join) wakebelltype.Join {
	return wakebelltype.Join{
		Open: m.GetOpen(), Parts: m.GetParts(),
		Done: m.GetDone(), Dead: m.GetDead(), Cancelled: m.GetCancelled(), Missing: m.GetMissing(),
	}
}
