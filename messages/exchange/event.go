package exchange

import "time"

// EventKind says what happened to a timer. Newer nodes may send kinds that
// are not listed here.
type EventKind string

const (
	// EventDelivered: a handler has it. Lateness is set.
	EventDelivered EventKind = "delivered"
	// EventAcked: it was handled. Took is set.
	EventAcked EventKind = "acked"
	// EventRetried: it failed and is due again. Took, RetryIn and Text, the
	// error, are set.
	EventRetried EventKind = "retried"
	// EventDead: it is a dead letter. Entry and Text, the reason, are set, and
	// Took if a handler had it.
	EventDead EventKind = "dead"
	// EventDiscarded: it was rejected where such timers are not kept. Took and
	// Text, the reason, are set.
	EventDiscarded EventKind = "discarded"
	// EventReleased: it was given back without a verdict, as by a drain.
	EventReleased EventKind = "released"
	// EventCrashed: its handler panicked; it comes back when its lease ends.
	// Text, the panic, is set.
	EventCrashed EventKind = "crashed"
	// EventSuperseded: it was scheduled again while its handler ran.
	EventSuperseded EventKind = "superseded"
	// EventCancelled: it was cancelled while its handler ran.
	EventCancelled EventKind = "cancelled"
	// EventLost: its lease ended while its handler ran.
	EventLost EventKind = "lost"

	// EventNode is about no timer: a node handles the topic. Each tells it
	// once, so that one knows who is being watched.
	EventNode EventKind = "node"
	// EventMissed is about no timer: Missed events of the node were dropped,
	// because there were too many or they could not be sent.
	EventMissed EventKind = "missed"
	// EventAttached is about no timer and comes from no node: from now on
	// events are received. It comes first, and again when the connection was
	// lost: what happened in between is not told.
	EventAttached EventKind = "attached"
)

// Event is something that happened on a topic. Fields that its kind does not
// name are zero.
type Event struct {
	Kind  EventKind
	Topic string
	Node  string    // that tells it: host and process
	At    time.Time // by the source's clock; zero where it is about no timer

	ID      string // of the timer, at most 512 bytes
	Attempt int    // deliveries, this one included

	Lateness time.Duration // from the activation to the delivery
	Took     time.Duration // from the delivery to the handler's end
	RetryIn  time.Duration
	Text     string // error or reason, at most 256 bytes
	Entry    string // of the dead letter
	Missed   int
}
