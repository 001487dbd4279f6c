package messages

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Read is what the reminder was set with. An error says that this process does
// not know its type, or cannot read it.
func (r *Reminder) Read() (proto.Message, error) { return r.GetMessage().UnmarshalNew() }

// Ack is the answer that the reminder was taken care of.
func (r *Reminder) Ack() *Ack { return &Ack{Delivery: r.GetDelivery()} }

// Nack is the answer that it was not; it comes again after a backoff.
func (r *Reminder) Nack(err error) *Nack {
	return &Nack{Delivery: r.GetDelivery(), Reason: text(err)}
}

// NackIn is Nack with the delay until it comes again, at least 0.
func (r *Reminder) NackIn(delay time.Duration, err error) *Nack {
	return &Nack{Delivery: r.GetDelivery(), Reason: text(err), Delay: durationpb.New(max(delay, 0))}
}

// Reject is the answer that it is not to come again: it becomes a dead letter.
func (r *Reminder) Reject(err error) *Reject {
	return &Reject{Delivery: r.GetDelivery(), Reason: text(err)}
}
