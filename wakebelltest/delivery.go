package wakebelltest

import (
	"fmt"
	"time"

	"github.com/wakebell/wakebell"
)

// Delivery is one delivery of a timer to a handler.
type Delivery struct {
	ID      string
	Topic   string // without the prefix
	Node    int    // the first is 1
	Attempt int    // from 1

	Activation time.Time // instant for which the timer was scheduled
	At         time.Time // when it was claimed
	Ended      time.Time // when the handler returned; zero while it runs

	// Outcome is the result of the delivery so far.
	Outcome Outcome
	// Err is the error of the handler, or the reason why the body could not be
	// passed to it.
	Err error

	// Content holds the encoded body and the headers; Body decodes the body.
	Content wakebell.Content
}

// Outcome is the result of a delivery.
type Outcome string

// Outcomes of deliveries.
const (
	// Running means that the handler has not returned.
	Running Outcome = "running"
	// Acked means that the timer was handled and deleted.
	Acked Outcome = "acked"
	// Retried means that the handler failed, and the timer waits for its next
	// attempt.
	Retried Outcome = "retried"
	// Dead means that the timer was dead-lettered.
	Dead Outcome = "dead"
	// Discarded means that the timer was rejected on a topic with
	// DiscardRejected, and deleted.
	Discarded Outcome = "discarded"
	// Snoozed means that the handler returned Snooze, which is no failure.
	Snoozed Outcome = "snoozed"
	// Expired means that no handler began within ExpireAfter, and the timer was removed, or
	// sent to another topic. Of a dead letter the outcome is Dead.
	Expired Outcome = "expired"
	// Released means that a drain returned the timer as if it had not been
	// delivered.
	Released Outcome = "released"
	// Crashed means that the handler panicked or its node crashed. The timer is
	// delivered again when its lease expires.
	Crashed Outcome = "crashed"
	// Superseded means that the timer was scheduled again while its handler ran.
	// The verdict is ignored.
	Superseded Outcome = "superseded"
	// Cancelled means that the timer was cancelled while its handler ran.
	Cancelled Outcome = "cancelled"
	// Lost means that the lease expired while the handler ran.
	Lost Outcome = "lost"
)

// String describes the delivery in one line.
func (d Delivery) String() string {
	s := fmt.Sprintf("%q of %q, attempt %d, delivered at %s: %s", d.ID, d.Topic, d.Attempt, instant(d.At), d.Outcome)
	if d.Err != nil {
		s += fmt.Sprintf(" (%v)", d.Err)
	}
	return s
}

// instant formats an instant.
func instant(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.999999") }

// Delivered returns the deliveries of a topic so far, in the order of their
// claims. They include timers that were dead-lettered without reaching a handler,
// because their payload cannot be decoded. The topic is named without the prefix
// of the Config.
func (w *World) Delivered(topic string) []Delivery {
	return w.history.deliveries(func(r *record) bool {
		return r.Topic == topic && (r.begun || r.Outcome == Dead || r.Outcome == Expired)
	})
}

// RequireDelivered returns the last delivery of a timer. If there is none, the test
// fails at once with a report of the deliveries and pending timers of the topic.
func (w *World) RequireDelivered(topic, id string) Delivery {
	w.t.Helper()
	var last Delivery
	for _, d := range w.Delivered(topic) {
		if d.ID == id {
			last = d
		}
	}
	if last.ID == "" {
		w.t.Fatalf("wakebelltest: timer %q of %q was not delivered.\n%s", id, topic, w.reportOf(topic))
	}
	return last
}
