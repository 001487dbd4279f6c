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

	Activation time.Time // the instant the timer was scheduled for
	At         time.Time // when it was claimed
	Ended      time.Time // when the handler returned; zero while it runs

	// Outcome is what became of it.
	Outcome Outcome
	// Err is what the handler returned; of a body that no handler could be
	// given, why not.
	Err error

	// Content is what the timer carries; Body reads its body.
	Content wakebell.Content
}

// Outcome is what became of a delivery.
type Outcome string

// What becomes of deliveries.
const (
	// Running: nothing yet, the handler has not returned.
	Running Outcome = "running"
	// Acked: it was handled, and the timer is gone.
	Acked Outcome = "acked"
	// Retried: it failed, and the timer waits for its next attempt.
	Retried Outcome = "retried"
	// Dead: it was rejected, or failed for the last time: a dead letter.
	Dead Outcome = "dead"
	// Discarded: it was rejected, on a topic with DiscardRejected.
	Discarded Outcome = "discarded"
	// Released: a drain gave it back, as if it had not been delivered.
	Released Outcome = "released"
	// Crashed: the handler panicked or its node crashed. The timer comes back
	// when its lease ends.
	Crashed Outcome = "crashed"
	// Superseded: the timer was scheduled again meanwhile; the verdict does not
	// count.
	Superseded Outcome = "superseded"
	// Cancelled: the timer was cancelled meanwhile.
	Cancelled Outcome = "cancelled"
	// Lost: the lease ended first.
	Lost Outcome = "lost"
)

// String tells the delivery in a line.
func (d Delivery) String() string {
	s := fmt.Sprintf("%q of %q, attempt %d, delivered at %s: %s", d.ID, d.Topic, d.Attempt, instant(d.At), d.Outcome)
	if d.Err != nil {
		s += fmt.Sprintf(" (%v)", d.Err)
	}
	return s
}

// instant writes an instant of the world.
func instant(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.999999") }

// Delivered returns the deliveries of a topic so far, in the order of their
// claims: what handlers were given, and what was dead because none could be
// given it. Topics are named without the prefix of the Config.
func (w *World) Delivered(topic string) []Delivery {
	return w.history.deliveries(func(r *record) bool {
		return r.Topic == topic && (r.begun || r.Outcome == Dead)
	})
}

// RequireDelivered returns the last delivery of a timer. A test in which there
// was none fails there, and is told what was delivered and what is upcoming.
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
