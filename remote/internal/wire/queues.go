package wire

import (
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/wakebelltype"
)

// QueueDeadLetterMessage converts a dead letter of a queue to a message.
func QueueDeadLetterMessage(l wakebelltype.QueueDeadLetter) *messages.QueueDeadLetter {
	return &messages.QueueDeadLetter{
		Entry: text.Valid(l.Entry), Body: l.Payload, Id: text.Valid(l.ID), Reason: text.Valid(l.Reason),
		Deliveries: convert.Count(l.Deliveries), At: convert.Timestamp(l.At), Cursor: text.Valid(l.Cursor),
	}
}

// QueueDeadLetterOf is the inverse of QueueDeadLetterMessage.
func QueueDeadLetterOf(m *messages.QueueDeadLetter) wakebelltype.QueueDeadLetter {
	return wakebelltype.QueueDeadLetter{
		Entry: m.GetEntry(), Payload: m.GetBody(), ID: m.GetId(), Reason: m.GetReason(),
		Deliveries: int(m.GetDeliveries()), At: convert.Time(m.GetAt()), Cursor: m.GetCursor(),
	}
}

// OfQueue is implemented by requests about a queue.
type OfQueue interface {
	GetName() string
	GetQueue() *messages.Queue
}

// QueueName returns the queue that a request names.
func QueueName(m OfQueue) wakebelltype.QueueKeys {
	return wakebelltype.QueueKeys{
		Name: m.GetName(), Separator: m.GetQueue().GetSeparator(), DeadLetters: m.GetQueue().GetDeadLetters(),
	}
}

// QueueMessage converts the keys of a queue to a message.
func QueueMessage(name wakebelltype.QueueKeys) *messages.Queue {
	return &messages.Queue{Separator: name.Separator, DeadLetters: name.DeadLetters}
}
