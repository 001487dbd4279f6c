package messages

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
)

// Ack answers that the timer was handled.
func (l *Lease) Ack() *Ack { return &Ack{Delivery: l.GetDelivery()} }

// AckWith answers that the timer was handled, with a result of at most 4 KiB.
func (l *Lease) AckWith(result *Content) *Ack {
	return &Ack{Delivery: l.GetDelivery(), Result: result}
}

// Checkpoint requests that the timer gets a new body, from which a later attempt resumes. It
// is answered with a KeepResponse or an Error.
func (l *Lease) Checkpoint(body []byte, contentType string) *KeepRequest {
	return &KeepRequest{Delivery: l.GetDelivery(), What: &KeepRequest_Checkpoint{Checkpoint: &Content{Body: body, ContentType: contentType}}}
}

// Progress reports how far the handler is, 0 – 1, with a note. It is answered with a
// KeepResponse or an Error.
func (l *Lease) Progress(fraction float64, note string) *KeepRequest {
	return &KeepRequest{Delivery: l.GetDelivery(), What: &KeepRequest_Progress{Progress: &Progress{Fraction: fraction, Note: note}}}
}

// Nack answers that it failed; it is retried after the topic's backoff.
func (l *Lease) Nack(err error) *Nack {
	return &Nack{Delivery: l.GetDelivery(), Reason: text(err)}
}

// NackIn is Nack with the delay until the retry, at least 0.
func (l *Lease) NackIn(delay time.Duration, err error) *Nack {
	return &Nack{Delivery: l.GetDelivery(), Reason: text(err), Delay: durationpb.New(max(delay, 0))}
}

// Snooze answers that it was not yet time for the timer: it is delivered again after delay,
// from 1 ms to 365 days, which is no failure and no attempt. Earlier nodes count a failure.
func (l *Lease) Snooze(delay time.Duration) *Nack {
	return &Nack{Delivery: l.GetDelivery(), Delay: durationpb.New(delay), Snooze: true}
}

// Reject answers that it must not be retried.
func (l *Lease) Reject(err error) *Reject {
	return &Reject{Delivery: l.GetDelivery(), Reason: text(err)}
}

// Release answers that another handler should process the timer: it is due at
// once, as if it had not been delivered.
func (l *Lease) Release() *Release { return &Release{Delivery: l.GetDelivery()} }

// Extend requests more time: the lease is valid for its TTL from then on.
func (l *Lease) Extend() *Extend { return &Extend{Delivery: l.GetDelivery()} }

// Ack answers that all timers without an answer of their own were handled.
func (b *LeaseBatch) Ack() *Ack { return b.all().Ack() }

// Nack answers that they failed; they are retried after the topic's backoff.
func (b *LeaseBatch) Nack(err error) *Nack { return b.all().Nack(err) }

// NackIn is Nack with the delay until the retry, at least 0.
func (b *LeaseBatch) NackIn(delay time.Duration, err error) *Nack { return b.all().NackIn(delay, err) }

// Snooze answers that it was not yet time for them.
func (b *LeaseBatch) Snooze(delay time.Duration) *Nack { return b.all().Snooze(delay) }

// Reject answers that they must not be retried.
func (b *LeaseBatch) Reject(err error) *Reject { return b.all().Reject(err) }

// Release answers that another handler should process them.
func (b *LeaseBatch) Release() *Release { return b.all().Release() }

// Extend requests more time for the leases without an answer.
func (b *LeaseBatch) Extend() *Extend { return b.all().Extend() }

// all stands for all leases in an answer.
func (b *LeaseBatch) all() *Lease { return &Lease{Delivery: b.GetDelivery()} }

// maxReason bounds a reason, in bytes. A node stores less of it.
const maxReason = 4 << 10

// text returns the text of an error as a message can have it: one that is not UTF-8, or larger than
// a frame, would end the link on which it is sent.
func text(err error) string {
	all := said(err)
	return strings.ToValidUTF8(all[:min(len(all), maxReason)], "\uFFFD")
}

// said returns the text of an error, or one that says with what Error panicked: it is called
// by the actor that answers, which may have other leases.
func said(err error) (text string) {
	if err == nil {
		return ""
	}
	defer func() {
		if reason := recover(); reason != nil {
			text = fmt.Sprintf("panic in Error(): %v", reason)
		}
	}()
	return err.Error()
}
