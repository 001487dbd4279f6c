// Package eventwire encodes the events of a topic as nodes publish them; see
// docs/keys.md.
package eventwire

import (
	"encoding/json"
	"time"

	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// eventsMessage is a message on the channel of events; see docs/keys.md.
type eventsMessage struct {
	Node   string      `json:"node"`
	Events []wireEvent `json:"events"`
}

// wireEvent is an event as it is published; instants and durations in µs.
type wireEvent struct {
	Kind     string `json:"event"`
	At       int64  `json:"at,omitempty"`
	ID       string `json:"id,omitempty"`
	Attempt  int    `json:"attempt,omitempty"`
	Lateness int64  `json:"lateness,omitempty"`
	Took     int64  `json:"took,omitempty"`
	RetryIn  int64  `json:"retry_in,omitempty"`
	Text     string `json:"text,omitempty"`
	Entry    string `json:"entry,omitempty"`
	Missed   int    `json:"missed,omitempty"`

	State *wireState `json:"state,omitempty"`
}

// wireState is a NodeState as it is published; instants and durations in µs, and the options in
// counts or nanoseconds by their names. Long runs are in the reports only.
type wireState struct {
	Version     string           `json:"version,omitempty"`
	Started     int64            `json:"started,omitempty"`
	Role        string           `json:"role,omitempty"`
	Breaker     string           `json:"breaker,omitempty"`
	Since       int64            `json:"breaker_since,omitempty"`
	Until       int64            `json:"breaker_until,omitempty"`
	Reason      string           `json:"breaker_reason,omitempty"`
	Group       string           `json:"group,omitempty"`
	Weight      int              `json:"weight,omitempty"`
	Paused      bool             `json:"paused,omitempty"`
	Running     int              `json:"running,omitempty"`
	Concurrency int              `json:"concurrency,omitempty"`
	Prefetch    bool             `json:"prefetch,omitempty"`
	Restarts    int64            `json:"restarts,omitempty"`
	Outages     int64            `json:"outages,omitempty"`
	ExpireAfter int64            `json:"expire_after,omitempty"`
	Options     map[string]int64 `json:"options,omitempty"`
}

func newWireState(n *wakebelltype.NodeState) *wireState {
	if n == nil {
		return nil
	}
	w := &wireState{
		Version: n.Version, Started: n.Started.UnixMicro(), Role: n.Role, Breaker: n.Breaker, Reason: n.BreakerReason,
		Since: micros(n.BreakerSince), Until: micros(n.BreakerUntil), Group: n.Group, Weight: n.Weight, Paused: n.Paused, Running: n.Running,
		Concurrency: n.Concurrency, Prefetch: n.Prefetch, Restarts: n.Restarts, Outages: n.Outages, ExpireAfter: n.ExpireAfter.Microseconds(),
		Options: map[string]int64{},
	}
	for _, t := range tuning.All {
		if v := t.Get(&n.Options); v != 0 {
			w.Options[t.Name] = v
		}
	}
	return w
}

func (w *wireState) read() *wakebelltype.NodeState {
	if w == nil {
		return nil
	}
	n := &wakebelltype.NodeState{
		Version: w.Version, Started: scripts.Instant(float64(w.Started) / 1e6), Role: w.Role, Breaker: w.Breaker, BreakerReason: w.Reason,
		BreakerSince: instant(w.Since), BreakerUntil: instant(w.Until), Group: w.Group, Weight: w.Weight, Paused: w.Paused, Running: w.Running,
		Concurrency: w.Concurrency, Prefetch: w.Prefetch, Restarts: w.Restarts, Outages: w.Outages,
		ExpireAfter: scripts.Micros(w.ExpireAfter),
	}
	for _, t := range tuning.All {
		t.Set(&n.Options, w.Options[t.Name])
	}
	return n
}

// micros is an instant in µs since 1970; 0: it is zero.
func micros(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMicro()
}

// instant is the inverse of micros.
func instant(us int64) (at time.Time) {
	if us != 0 {
		at = scripts.Instant(float64(us) / 1e6)
	}
	return at
}

// Encode encodes the events of one node, at least one.
func Encode(events []wakebelltype.Event) ([]byte, error) {
	m := eventsMessage{Node: events[0].Node, Events: make([]wireEvent, len(events))}
	for i, e := range events {
		m.Events[i] = wireEvent{
			Kind: string(e.Kind), ID: e.ID, Attempt: e.Attempt, Text: e.Text, Entry: e.Entry, Missed: e.Missed,
			Lateness: e.Lateness.Microseconds(), Took: e.Took.Microseconds(), RetryIn: e.RetryIn.Microseconds(),
			State: newWireState(e.State),
		}
		m.Events[i].At = micros(e.At)
	}
	return json.Marshal(m)
}

// Decode reads a message; it ignores messages of another format.
func Decode(topic, text string) []wakebelltype.Event {
	var m eventsMessage
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return nil
	}
	events := make([]wakebelltype.Event, len(m.Events))
	for i, w := range m.Events {
		events[i] = wakebelltype.Event{
			Kind: wakebelltype.EventKind(w.Kind), Topic: topic, Node: m.Node,
			ID: w.ID, Attempt: w.Attempt, Text: w.Text, Entry: w.Entry, Missed: w.Missed,
			Lateness: scripts.Micros(w.Lateness), Took: scripts.Micros(w.Took), RetryIn: scripts.Micros(w.RetryIn),
			State: w.State.read(),
		}
		events[i].At = instant(w.At)
	}
	return events
}
