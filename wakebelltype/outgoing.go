package wakebelltype

import (
	"context"
	"slices"
)

// Header is a header of a timer or a message.
type Header struct{ Key, Value string }

// OutgoingKind says what an Outgoing becomes.
type OutgoingKind string

// Kinds of Outgoing.
const (
	OutgoingTimer     OutgoingKind = "timer"     // a timer of a topic
	OutgoingMessage   OutgoingKind = "message"   // a message of a queue
	OutgoingRecurring OutgoingKind = "recurring" // a recurring schedule or reminder, for all of its runs
	OutgoingReminder  OutgoingKind = "reminder"  // a one-time reminder of an actor
)

// Outgoing is a timer, a message, a recurring schedule or a reminder on its way out of
// the process, with an encoded body. A ScheduleMiddleware may replace Body, ContentType
// and Headers. Changes of the other fields have no effect.
type Outgoing struct {
	Kind  OutgoingKind
	Topic string // the topic or the queue, without the prefix
	ID    string // of the timer or the reminder, or the name of the schedule; empty for a message

	Body        []byte
	ContentType string // messages of queues have none

	// Headers are the headers except those with a field of their own, such as
	// correlation_id. Messages of queues have headers for Wakebell's handlers only.
	Headers []Header
}

// Header returns the value of a header and whether it is set.
func (o *Outgoing) Header(key string) (value string, ok bool) {
	i := o.index(key)
	if i < 0 {
		return "", false
	}
	return o.Headers[i].Value, true
}

// SetHeader sets a header; key and value have at most 65,535 bytes each.
func (o *Outgoing) SetHeader(key, value string) {
	if i := o.index(key); i >= 0 {
		o.Headers[i].Value = value
		return
	}
	o.Headers = append(o.Headers, Header{key, value})
}

func (o *Outgoing) index(key string) int {
	return slices.IndexFunc(o.Headers, func(h Header) bool { return h.Key == key })
}

// ScheduleFunc stores what one call schedules or publishes.
type ScheduleFunc func(ctx context.Context, out []*Outgoing) error

// ScheduleMiddleware wraps the calls that schedule and publish: it changes the bodies
// and headers before next, for instance to encrypt or compress them, and sees the error
// of next. It is the counterpart of wakebell.Middleware, which restores the bodies
// before they reach a handler.
//
// It runs in the goroutine of the call, once for each call: retries store the same
// bytes. It sees the drafts of a batch together, and passes all of them on, in the same
// order. An error that it returns without calling next ends the call; nothing is stored
// then.
type ScheduleMiddleware func(next ScheduleFunc) ScheduleFunc
