package remote

import (
	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
)

func letterMessage(l wakebell.QueueLetter) *messages.QueueDeadLetter {
	return &messages.QueueDeadLetter{
		Entry: text(l.Entry), Body: l.Payload, Id: text(l.ID), Reason: text(l.Reason),
		Deliveries: count(l.Deliveries), At: timestamp(l.At),
	}
}

func letterOf(m *messages.QueueDeadLetter) wakebell.QueueLetter {
	return wakebell.QueueLetter{
		Entry: m.GetEntry(), Payload: m.GetBody(), ID: m.GetId(), Reason: m.GetReason(),
		Deliveries: int(m.GetDeliveries()), At: instantOf(m.GetAt()),
	}
}

// ofQueue is a request about a queue.
type ofQueue interface {
	GetName() string
	GetQueue() *messages.Queue
}

func queueName(m ofQueue) wakebell.QueueName {
	return wakebell.QueueName{
		Name: m.GetName(), Separator: m.GetQueue().GetSeparator(), DeadLetters: m.GetQueue().GetDeadLetters(),
	}
}

func queueMessage(name wakebell.QueueName) *messages.Queue {
	return &messages.Queue{Separator: name.Separator, DeadLetters: name.DeadLetters}
}
