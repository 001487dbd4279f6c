package wakebelltest

import (
	"fmt"
	"testing"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Upcoming is a timer in Redis. Due is the instant of its next delivery; for a
// running timer, the expiry of its lease.
type Upcoming struct {
	wakebell.Info
	In      time.Duration // from now until Due
	Content wakebell.Content
}

// String describes the timer in one line.
func (u Upcoming) String() string {
	s := fmt.Sprintf("%q of %q, %s, due in %v at %s", u.ID, u.Topic, u.State, u.In, instant(u.Due))
	if u.Attempts > 0 {
		s += fmt.Sprintf(", after %d attempts", u.Attempts)
	}
	if u.LastError != "" {
		s += fmt.Sprintf(" (%s)", u.LastError)
	}
	return s
}

// Upcoming returns the timers of a topic in the order in which they are due.
func (w *World) Upcoming(topic string) []Upcoming {
	w.t.Helper()
	all, err := w.upcoming(w.client, topic)
	if err != nil {
		w.t.Fatalf("wakebelltest: upcoming of %q: %v", topic, err)
	}
	return all
}

func (w *World) upcoming(c *wakebell.Client, topic string) ([]Upcoming, error) {
	var all []Upcoming
	for info, err := range c.List(w.background(), topic, wakebell.Filter{}, wakebelltype.Page{}) {
		if err != nil {
			return nil, err
		}
		_, content, err := c.Get(w.background(), topic, info.ID)
		if err != nil {
			return nil, err
		}
		all = append(all, Upcoming{Info: info, In: time.Until(info.Due), Content: content})
	}
	return all, nil
}

// RequireUpcoming returns a timer by its id. If there is none, the test fails at
// once with a report of the pending timers and deliveries of the topic.
func (w *World) RequireUpcoming(topic, id string) Upcoming {
	w.t.Helper()
	for _, u := range w.Upcoming(topic) {
		if u.ID == id {
			return u
		}
	}
	w.t.Fatalf("wakebelltest: there is no timer %q of %q.\n%s", id, topic, w.reportOf(topic))
	panic("unreachable")
}

// Dead returns the dead letters of a topic, the oldest first.
func (w *World) Dead(topic string) []wakebell.DeadLetter {
	w.t.Helper()
	var all []wakebell.DeadLetter
	for letter, err := range w.client.DeadLetters(w.background(), topic, wakebelltype.DeadFilter{}, wakebelltype.Page{}) {
		if err != nil {
			w.t.Fatalf("wakebelltest: dead letters of %q: %v", topic, err)
		}
		all = append(all, letter)
	}
	return all
}

// Body decodes the body of a delivery, a pending timer or a dead letter, as for a
// handler of a Topic[T]. If it cannot be decoded into a T, the test fails at once.
func Body[T any](t testing.TB, c wakebell.Content) T {
	t.Helper()
	body, err := wakebell.NewTopic[T]("body").Read(&messages.Lease{Body: c.Body, ContentType: c.ContentType})
	if err != nil {
		t.Fatalf("wakebelltest: the body of the timer with correlation id %q, %q (%s): %v",
			c.CorrelationID, c.Body, c.ContentType, err)
	}
	return body
}
