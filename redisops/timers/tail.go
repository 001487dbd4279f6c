package timers

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// watchFor is how long nodes publish events after a watcher's announcement.
const watchFor = 10 * time.Second

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
}

// PublishEvents publishes events of one node to the watchers of the topic. Errors
// wrap [redisops.ErrChannelDenied] or [exchange.ErrUnavailable].
func (s *Timers) PublishEvents(ctx context.Context, topic string, events []wakebelltype.Event) error {
	if len(events) == 0 {
		return nil
	}
	m := eventsMessage{Node: events[0].Node, Events: make([]wireEvent, len(events))}
	for i, e := range events {
		m.Events[i] = wireEvent{
			Kind: string(e.Kind), ID: e.ID, Attempt: e.Attempt, Text: e.Text, Entry: e.Entry, Missed: e.Missed,
			Lateness: e.Lateness.Microseconds(), Took: e.Took.Microseconds(), RetryIn: e.RetryIn.Microseconds(),
		}
		if !e.At.IsZero() {
			m.Events[i].At = e.At.UnixMicro()
		}
	}
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("events of %q: %w", topic, err)
	}
	return s.publish(ctx, s.keys.Of(topic).events, text)
}

func (s *Timers) publish(ctx context.Context, channel string, text []byte) error {
	err := s.RDB.Publish(ctx, channel, text).Err()
	if redis.IsPermissionError(err) {
		return fmt.Errorf("publish on %q: %w: %w", channel, redisops.ErrChannelDenied, err)
	}
	if err != nil {
		return fmt.Errorf("publish on %q: %w", channel, scripts.Wrap(ctx, nil, err))
	}
	return nil
}

// readEvents reads a message; it ignores messages of another format.
func readEvents(topic, text string) []wakebelltype.Event {
	var m eventsMessage
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return nil
	}
	events := make([]wakebelltype.Event, len(m.Events))
	for i, w := range m.Events {
		events[i] = wakebelltype.Event{
			Kind: wakebelltype.EventKind(w.Kind), Topic: topic, Node: m.Node,
			ID: w.ID, Attempt: w.Attempt, Text: w.Text, Entry: w.Entry, Missed: w.Missed,
			Lateness: micros(w.Lateness), Took: micros(w.Took), RetryIn: micros(w.RetryIn),
		}
		if w.At != 0 {
			events[i].At = scripts.Instant(float64(w.At) / 1e6)
		}
	}
	return events
}

func micros(us int64) time.Duration {
	return time.Duration(min(max(us, -scripts.MaxMicros), scripts.MaxMicros)) * time.Microsecond
}

// Tail watches the events of a topic on all nodes until yield returns false or ctx
// ends. It subscribes to the channel of events, and announces itself on the channel
// of hints every few seconds, because nodes publish events only while the topic is
// watched. An [exchange.EventAttached] comes first, and again after each
// reconnection. The error is ctx's, or wraps [redisops.ErrChannelDenied] or, at the
// start only, [exchange.ErrUnavailable].
func (s *Timers) Tail(ctx context.Context, topic string, yield func(wakebelltype.Event) bool) error {
	if err := layout.CheckTopic(topic); err != nil {
		return err
	}
	k := s.keys.Of(topic)
	var since atomic.Int64 // when the subscription was confirmed, in µs; 0: not yet
	if err := s.publish(ctx, k.Hint, watching(&since)); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	announced := make(chan struct{})
	go func() {
		defer close(announced)
		s.announce(ctx, k.Hint, &since)
	}()
	defer func() { cancel(); <-announced }()

	nodes := map[string]bool{}
	hand := func(events ...wakebelltype.Event) error {
		for _, e := range events {
			if e.Kind == wakebelltype.EventNode {
				if nodes[e.Node] {
					continue
				}
				nodes[e.Node] = true
			}
			if !yield(e) {
				return scripts.ErrEnough
			}
		}
		return nil
	}
	err := s.Receive(ctx, []string{k.events}, func(string) error {
		clear(nodes)
		since.Store(time.Now().UnixMicro())
		if err := s.publish(ctx, k.Hint, watching(&since)); err != nil {
			return err
		}
		return hand(wakebelltype.Event{Kind: wakebelltype.EventAttached, Topic: topic})
	}, func(_, text string) error { return hand(readEvents(topic, text)...) })
	if err != nil {
		return fmt.Errorf("events on %q: %w", k.events, err)
	}
	return nil
}

// announce repeats the announcement. It ignores failures, because the subscription
// uses the same Redis and reports them.
func (s *Timers) announce(ctx context.Context, channel string, since *atomic.Int64) {
	tick := time.NewTicker(exchange.AnnounceEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = s.publish(ctx, channel, watching(since))
		case <-ctx.Done():
			return
		}
	}
}

// watching is the announcement of a watcher: for how long it needs events, and for
// how long it has been subscribed. A node that has just started publishes its
// events of that time.
func watching(since *atomic.Int64) []byte {
	watched := int64(0)
	if at := since.Load(); at > 0 {
		watched = max(time.Now().UnixMicro()-at, 0)
	}
	return fmt.Appendf(nil, "tail %d %d", watchFor.Microseconds(), watched)
}
