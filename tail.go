package wakebell

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"os"

	"github.com/wakebell/wakebell/messages/exchange"
)

// Event is something that happened to a timer, as Client.Tail tells it.
type Event = exchange.Event

// EventKind says what happened.
type EventKind = exchange.EventKind

// What may happen. The fields of Event that a kind does not name are zero.
const (
	// EventDelivered: a handler has the timer. With Lateness.
	EventDelivered = exchange.EventDelivered
	// EventAcked: it was handled. With Took.
	EventAcked = exchange.EventAcked
	// EventRetried: it failed and is due again. With Took, RetryIn and the
	// error as Text.
	EventRetried = exchange.EventRetried
	// EventDead: it is a dead letter. With its Entry, the reason as Text and,
	// if a handler had it, Took.
	EventDead = exchange.EventDead
	// EventDiscarded: it was rejected, see DiscardRejected. With Took and the
	// reason as Text.
	EventDiscarded = exchange.EventDiscarded
	// EventReleased: it was given back without a verdict, as by a drain.
	EventReleased = exchange.EventReleased
	// EventCrashed: its handler panicked; it comes back when its lease ends.
	// With Took and the panic as Text.
	EventCrashed = exchange.EventCrashed
	// EventSuperseded: it was scheduled again while its handler ran.
	EventSuperseded = exchange.EventSuperseded
	// EventCancelled: it was cancelled while its handler ran.
	EventCancelled = exchange.EventCancelled
	// EventLost: its lease ended while its handler ran.
	EventLost = exchange.EventLost
	// EventNode: a node is there that handles the topic. With Node alone.
	EventNode = exchange.EventNode
	// EventMissed: as many events of a node as Missed says were dropped.
	EventMissed = exchange.EventMissed
	// EventAttached: what happens from now on is told. It is the first event,
	// and comes again after the connection was lost.
	EventAttached = exchange.EventAttached
)

// Tail yields what happens on a topic, on all nodes that handle it, as it
// happens, until the loop ends or ctx does; an error is yielded last. It may
// miss events: nothing waits for it. A node tells at most 20,000 events a
// second of a topic, and says how many it dropped. Nodes tell events only
// while somebody watches; of what a node does first, up to 1,000 events are kept
// until it knows of those who watch, which takes 3 s. Python workers tell none.
//
// Errors: ErrUnavailable when Redis does not answer at the start (later it is
// waited for), ErrChannelDenied, or ctx's.
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

// nodeName is how events call a System: its host, its process and its name.
func nodeName(system string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d/%s", cmp.Or(host, "unknown"), os.Getpid(), system)
}
