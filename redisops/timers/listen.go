package timers

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/eventwire"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Listen delivers the hints of topics until ctx ends, over one connection. It
// returns ctx's error, or an error that wraps [wakebelltype.ErrChannelDenied]; the
// caller then polls without hints. It reconnects automatically. After each
// confirmed (re)subscription of a topic it delivers a HintSubscribed, because hints
// may have been missed. Deliver is called from one goroutine and must not block.
func (s *Timers) Listen(ctx context.Context, topics []string, deliver func(exchange.Hint)) error {
	channels := make(map[string]string, len(topics))
	for _, topic := range topics {
		if err := layout.CheckTopic(topic); err != nil {
			return err
		}
		channels[s.keys.Of(topic).Hint] = topic
	}
	return s.ListenChannels(ctx, channels, deliver)
}

// ListenChannels delivers the messages of channels. The map gives the source of
// each channel.
func (s *Timers) ListenChannels(ctx context.Context, channels map[string]string, deliver func(exchange.Hint)) error {
	if len(channels) == 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	return s.receive(ctx, &s.hearing, slices.Sorted(maps.Keys(channels)), func(channel string) error {
		deliver(exchange.Hint{Source: channels[channel], Kind: exchange.HintSubscribed})
		return nil
	}, func(channel, text string) error {
		if hint, ok := readHint(channels[channel], text); ok {
			deliver(hint)
		}
		return nil
	})
}

// Receive maintains a subscription to channels. It calls confirmed for each channel
// that is (re)subscribed, and received for each message.
func (s *Timers) Receive(
	ctx context.Context, channels []string, confirmed func(channel string) error, received func(channel, text string) error,
) error {
	return s.receive(ctx, nil, channels, confirmed, received)
}

func (s *Timers) receive(
	ctx context.Context, health *scripts.Hearing, channels []string, confirmed func(channel string) error, received func(channel, text string) error,
) error {
	l := scripts.Listener{
		RDB: s.RDB, Log: s.logger(), PingEvery: s.PingEvery, Channels: channels, Health: health, Confirmed: confirmed, Received: received,
	}
	return l.Run(ctx)
}

// Deaf says why hints that are published do not arrive, although there is a subscription;
// empty: they do, as far as is known.
func (s *Timers) Deaf() string { return s.hearing.Problem() }

// readHint reads a hint that prelude.lua publishes; it ignores other messages.
func readHint(topic, text string) (exchange.Hint, bool) {
	kind, rest, _ := strings.Cut(text, " ")
	switch kind {
	case "control":
		return readPlain(topic, exchange.HintControl, rest)
	case "free":
		return readPlain(topic, exchange.HintFree, rest)
	case "joined":
		return readPlain(topic, exchange.HintJoined, rest)
	case "left":
		return readPlain(topic, exchange.HintLeft, rest)
	case "help":
		rank, err := strconv.Atoi(rest)
		return exchange.Hint{Source: topic, Kind: exchange.HintHelp, Rank: rank}, err == nil && rank > 0 && topic != ""
	case "tail":
		return readWatching(topic, rest)
	}
	first, second, ok := strings.Cut(rest, " ")
	if !ok || topic == "" {
		return exchange.Hint{}, false
	}
	switch kind {
	case "due":
		us, err := strconv.ParseInt(first, 10, 64)
		sent, err2 := scripts.ReadScore(second)
		if err != nil || err2 != nil || us < 0 {
			return exchange.Hint{}, false
		}
		in := time.Duration(min(us, scripts.MaxMicros)) * time.Microsecond
		return exchange.Hint{Source: topic, Kind: exchange.HintDue, In: in, Sent: scripts.Instant(sent)}, true
	case "check":
		sent, err := scripts.ReadScore(first)
		if err != nil {
			return exchange.Hint{}, false
		}
		return exchange.Hint{Source: topic, Kind: exchange.HintCheck, ID: second, Sent: scripts.Instant(sent)}, true
	default:
		return exchange.Hint{}, false
	}
}

// readPlain reads a hint that has only the instant at which it was sent.
func readPlain(topic string, kind exchange.HintKind, text string) (exchange.Hint, bool) {
	sent, err := scripts.ReadScore(text)
	return exchange.Hint{Source: topic, Kind: kind, Sent: scripts.Instant(sent)}, err == nil && topic != ""
}

// readWatching reads a message of watching; the second figure may be missing.
func readWatching(topic, text string) (exchange.Hint, bool) {
	first, second, _ := strings.Cut(text, " ")
	us, err := strconv.ParseInt(first, 10, 64)
	watched, err2 := strconv.ParseInt(cmp.Or(second, "0"), 10, 64)
	hint := exchange.Hint{Source: topic, Kind: exchange.HintTail, In: scripts.Micros(us), Watched: scripts.Micros(watched)}
	return hint, err == nil && err2 == nil && us > 0 && watched >= 0 && topic != ""
}

// watchFor is how long nodes publish events after a watcher's announcement.
const watchFor = 10 * time.Second

// PublishEvents publishes events of one node to the watchers of the topic. Errors
// wrap [wakebelltype.ErrChannelDenied] or [exchange.ErrUnavailable].
func (s *Timers) PublishEvents(ctx context.Context, topic string, events []wakebelltype.Event) error {
	if len(events) == 0 {
		return nil
	}
	text, err := eventwire.Encode(events)
	if err != nil {
		return fmt.Errorf("events of %q: %w", topic, err)
	}
	return s.publish(ctx, s.keys.Of(topic).events, text)
}

func (s *Timers) publish(ctx context.Context, channel string, text []byte) error {
	err := s.RDB.Publish(ctx, channel, text).Err()
	if redis.IsPermissionError(err) {
		return fmt.Errorf("publish on %q: %w: %w", channel, wakebelltype.ErrChannelDenied, err)
	}
	if err != nil {
		return fmt.Errorf("publish on %q: %w", channel, scripts.Wrap(ctx, nil, err))
	}
	return nil
}

// Tail watches the events of a topic on all nodes until yield returns false or ctx
// ends. It subscribes to the channel of events, and announces itself on the channel
// of hints every few seconds, because nodes publish events only while the topic is
// watched. An [exchange.EventAttached] comes first, and again after each
// reconnection. The error is ctx's, or wraps [wakebelltype.ErrChannelDenied] or, at the
// start only, [exchange.ErrUnavailable].
func (s *Timers) Tail(ctx context.Context, topic string, yield func(wakebelltype.Event) bool) error {
	return s.TailAll(ctx, topic, []string{topic}, yield)
}

// TailAll watches several topics as Tail does one. The events have name as their topic;
// an [exchange.EventAttached] comes when all topics are subscribed.
func (s *Timers) TailAll(ctx context.Context, name string, topics []string, yield func(wakebelltype.Event) bool) error {
	channels, hints := make([]string, len(topics)), make([]string, len(topics))
	for i, topic := range topics {
		if err := layout.CheckTopic(topic); err != nil {
			return err
		}
		k := s.keys.Of(topic)
		channels[i], hints[i] = k.events, k.Hint
	}
	var since atomic.Int64 // when the subscription was confirmed, in µs; 0: not yet
	if err := s.publishAll(ctx, hints, watching(&since)); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	announced := make(chan struct{})
	go func() {
		defer close(announced)
		s.announce(ctx, hints, &since)
	}()
	defer func() { cancel(); <-announced }()

	w := watch{nodes: map[string]bool{}, yield: yield}
	confirmed := map[string]bool{}
	err := s.Receive(ctx, channels, func(channel string) error {
		if confirmed[channel] = true; len(confirmed) < len(channels) {
			return nil
		}
		clear(confirmed)
		clear(w.nodes)
		since.Store(time.Now().UnixMicro())
		if err := s.publishAll(ctx, hints, watching(&since)); err != nil {
			return err
		}
		return w.hand(wakebelltype.Event{Kind: wakebelltype.EventAttached, Topic: name})
	}, func(_, text string) error { return w.hand(eventwire.Decode(name, text)...) })
	if err != nil {
		return fmt.Errorf("events on %q: %w", channels[0], err)
	}
	return nil
}

// watch gives events to a watcher.
type watch struct {
	nodes map[string]bool // that were announced since the last subscription
	yield func(wakebelltype.Event) bool
}

func (w *watch) hand(events ...wakebelltype.Event) error {
	for _, e := range events {
		state, answer := e.State, e.Kind == wakebelltype.EventNode
		if e.State = nil; (!answer || !w.nodes[e.Node]) && !w.yield(e) {
			return scripts.ErrEnough
		}
		if !answer {
			continue
		}
		w.nodes[e.Node] = true
		if e.Kind, e.State = wakebelltype.EventState, state; state != nil && !w.yield(e) {
			return scripts.ErrEnough
		}
	}
	return nil
}

// publishAll publishes a message on several channels.
func (s *Timers) publishAll(ctx context.Context, channels []string, text []byte) error {
	for _, channel := range channels {
		if err := s.publish(ctx, channel, text); err != nil {
			return err
		}
	}
	return nil
}

// announce repeats the announcement. It ignores failures, because the subscription
// uses the same Redis and reports them.
func (s *Timers) announce(ctx context.Context, channels []string, since *atomic.Int64) {
	tick := time.NewTicker(exchange.AnnounceEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = s.publishAll(ctx, channels, watching(since))
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
