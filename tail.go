package wakebell

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"os"

	"github.com/wakebell/wakebell/messages/exchange"
)

// Event is an event of a topic, as Client.Tail yields it.
type Event = exchange.Event

// EventKind is the kind of an Event.
type EventKind = exchange.EventKind

// Kinds of events. The fields of Event that a kind does not mention are zero.
const (
	// EventDelivered means that a handler received the timer. It has Lateness.
	EventDelivered = exchange.EventDelivered
	// EventAcked means that the timer was handled. It has Took.
	EventAcked = exchange.EventAcked
	// EventRetried means that the timer failed and will be retried. It has Took,
	// RetryIn, and the error in Text.
	EventRetried = exchange.EventRetried
	// EventDead means that the timer was dead-lettered. It has Entry, the reason
	// in Text, and Took if a handler received the timer.
	EventDead = exchange.EventDead
	// EventDiscarded means that the timer was rejected and deleted; see
	// DiscardRejected. It has Took, and the reason in Text.
	EventDiscarded = exchange.EventDiscarded
	// EventReleased means that the timer was returned without a verdict, for
	// instance by a drain.
	EventReleased = exchange.EventReleased
	// EventCrashed means that the handler panicked; the timer is delivered again
	// when its lease expires. It has Took, and the panic in Text.
	EventCrashed = exchange.EventCrashed
	// EventSuperseded means that the timer was scheduled again while its handler
	// ran.
	EventSuperseded = exchange.EventSuperseded
	// EventCancelled means that the timer was cancelled while its handler ran.
	EventCancelled = exchange.EventCancelled
	// EventLost means that the lease expired while the handler ran.
	EventLost = exchange.EventLost
	// EventNode means that a node handles the topic. It has only Node.
	EventNode = exchange.EventNode
	// EventMissed means that events of a node were dropped; Missed is their
	// number.
	EventMissed = exchange.EventMissed
	// EventAttached means that events are received from now on. It is the first
	// event, and is repeated when a lost connection is restored.
	EventAttached = exchange.EventAttached
)

// Tail returns an iterator over the events of a topic on all nodes, as they
// happen, until the loop or ctx ends. After an error, which it yields with a zero
// Event, it ends.
//
// Events may be missed. A node sends at most 20,000 events of a topic per second,
// and reports how many it dropped. Nodes send events only while at least one Tail
// runs; a node that starts handling the topic buffers up to 1,000 events for 3 s,
// until it knows whether one does. Python workers send no events.
//
// Errors are ErrUnavailable if Redis does not answer at the start (later outages
// are waited out), ErrChannelDenied, and the error of ctx.
func (c *Client) Tail(ctx context.Context, topic string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		full, err := c.fullName(topic)
		if err == nil {
			err = c.store.Tail(ctx, full, func(e Event) bool { return yield(e, nil) })
		}
		if err != nil {
			yield(Event{}, err)
		}
	}
}

// nodeName returns the Node of events: host, process id and name of the System.
func nodeName(system string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d/%s", cmp.Or(host, "unknown"), os.Getpid(), system)
}
