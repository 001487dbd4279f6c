package messages

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Read returns the message that the reminder was set with. An error says that
// this process does not know its type, or cannot decode it.
func (r *Reminder) Read() (proto.Message, error) { return r.GetMessage().UnmarshalNew() }

// Ack answers that the reminder was handled.
func (r *Reminder) Ack() *Ack { return &Ack{Delivery: r.GetDelivery()} }

// Nack answers that it failed; it is delivered again after a backoff.
func (r *Reminder) Nack(err error) *Nack {
	return &Nack{Delivery: r.GetDelivery(), Reason: text(err)}
}

// NackIn is Nack with the delay until the next delivery, at least 0.
func (r *Reminder) NackIn(delay time.Duration, err error) *Nack {
	return &Nack{Delivery: r.GetDelivery(), Reason: text(err), Delay: durationpb.New(max(delay, 0))}
}

// Reject answers that it must not be delivered again: it becomes a dead letter.
func (r *Reminder) Reject(err error) *Reject {
	return &Reject{Delivery: r.GetDelivery(), Reason: text(err)}
}
