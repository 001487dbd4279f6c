package timers

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

// Listen delivers the hints of topics until ctx ends, over one connection. It
// returns ctx's error, or an error that wraps [redisops.ErrChannelDenied]; the
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
	return s.Receive(ctx, slices.Sorted(maps.Keys(channels)), func(channel string) error {
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
	l := scripts.Listener{
		RDB: s.RDB, Log: s.logger(), PingEvery: s.PingEvery, Channels: channels, Confirmed: confirmed, Received: received,
	}
	return l.Run(ctx)
}

// readHint reads a hint that prelude.lua publishes; it ignores other messages.
func readHint(topic, text string) (exchange.Hint, bool) {
	kind, rest, _ := strings.Cut(text, " ")
	switch kind {
	case "control":
		sent, err := scripts.ReadScore(rest)
		return exchange.Hint{Source: topic, Kind: exchange.HintControl, Sent: scripts.Instant(sent)}, err == nil && topic != ""
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

// readWatching reads a message of watching; the second figure may be missing.
func readWatching(topic, text string) (exchange.Hint, bool) {
	first, second, _ := strings.Cut(text, " ")
	us, err := strconv.ParseInt(first, 10, 64)
	watched, err2 := strconv.ParseInt(cmp.Or(second, "0"), 10, 64)
	hint := exchange.Hint{Source: topic, Kind: exchange.HintTail, In: micros(us), Watched: micros(watched)}
	return hint, err == nil && err2 == nil && us > 0 && watched >= 0 && topic != ""
}
