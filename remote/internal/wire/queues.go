package wire

import (
	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
)

// LetterMessage converts a dead letter of a queue to a message.
func LetterMessage(l wakebell.QueueLetter) *messages.QueueDeadLetter {
	return &messages.QueueDeadLetter{
		Entry: Text(l.Entry), Body: l.Payload, Id: Text(l.ID), Reason: Text(l.Reason),
		Deliveries: Count(l.Deliveries), At: Timestamp(l.At),
	}
}

// LetterOf is the inverse of LetterMessage.
func LetterOf(m *messages.QueueDeadLetter) wakebell.QueueLetter {
	return wakebell.QueueLetter{
		Entry: m.GetEntry(), Payload: m.GetBody(), ID: m.GetId(), Reason: m.GetReason(),
		Deliveries: int(m.GetDeliveries()), At: InstantOf(m.GetAt()),
	}
}

// OfQueue is a request about a queue.
type OfQueue interface {
	GetName() string
	GetQueue() *messages.Queue
}

// QueueName returns the queue that a request names.
func QueueName(m OfQueue) wakebell.QueueName {
	return wakebell.QueueName{
		Name: m.GetName(), Separator: m.GetQueue().GetSeparator(), DeadLetters: m.GetQueue().GetDeadLetters(),
	}
}

// QueueMessage converts the keys of a queue to a message.
func QueueMessage(name wakebell.QueueName) *messages.Queue {
	return &messages.Queue{Separator: name.Separator, DeadLetters: name.DeadLetters}
}
