package redisops

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/messages/exchange"
)

const (
	pingEvery       = 15 * time.Second
	listenBackoff   = 100 * time.Millisecond
	maxListenPause  = 5 * time.Second
	channelsAtOnce  = 1000
	settledSession  = 30 * time.Second // a session this long resets the backoff
	silentPingLimit = 2                // pings without an answer that end a session
)

// Listen delivers the hints of topics until ctx ends, over one connection. It
// returns ctx's error, or one that wraps [ErrChannelDenied]: then the caller
// polls without hints. It connects again by itself; after each confirmed
// (re)subscription of a topic it delivers a HintSubscribed, for hints may have
// been missed. Deliver is called from one goroutine and must not block.
func (s *Timers) Listen(ctx context.Context, topics []string, deliver func(exchange.Hint)) error {
	channels := make(map[string]string, len(topics))
	for _, topic := range topics {
		if err := checkTopic(topic); err != nil {
			return err
		}
		channels[s.keys.of(topic).hint] = topic
	}
	if len(channels) == 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	l := listener{
		rdb: s.rdb, log: s.logger(), channels: slices.Sorted(maps.Keys(channels)),
		subscribed: func(channel string) {
			deliver(exchange.Hint{Source: channels[channel], Kind: exchange.HintSubscribed})
		},
		heard: func(channel, text string) {
			if hint, ok := readHint(channels[channel], text); ok {
				deliver(hint)
			}
		},
	}
	return l.run(ctx)
}

// listener keeps a subscription to channels, over one connection.
type listener struct {
	rdb        redis.UniversalClient
	log        *slog.Logger
	channels   []string
	subscribed func(channel string) // confirmed, at first and again
	heard      func(channel, text string)
}

// run listens until ctx ends, or the client is closed, or the user may not
// subscribe: ErrChannelDenied.
func (l listener) run(ctx context.Context) error {
	pause := listenBackoff
	for {
		began := time.Now()
		err := l.once(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case redis.IsPermissionError(err):
			return fmt.Errorf("%w: %w", ErrChannelDenied, err)
		case errors.Is(err, redis.ErrClosed):
			return wrap(ctx, nil, err)
		}
		if time.Since(began) > settledSession {
			pause = listenBackoff
		}
		l.log.WarnContext(ctx, "subscription to hints lost", "error", err, "pause", pause)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause/2 + rand.N(pause)):
		}
		pause = min(2*pause, maxListenPause)
	}
}

// once is one session: a connection from its subscription to its end.
func (l listener) once(ctx context.Context) error {
	sub := l.rdb.Subscribe(ctx)
	defer func() { _ = sub.Close() }() // the session is over; nobody could use the error
	// Closing is what wakes a blocked read.
	stop := context.AfterFunc(ctx, func() { _ = sub.Close() })
	defer stop()

	for part := range slices.Chunk(l.channels, channelsAtOnce) {
		if err := sub.Subscribe(ctx, part...); err != nil {
			return err
		}
	}
	for silent := 0; ; {
		message, err := sub.ReceiveTimeout(ctx, pingEvery)
		var network net.Error
		switch {
		case err == nil:
			silent = 0
		case errors.As(err, &network) && network.Timeout() && silent < silentPingLimit:
			silent++
			if err := sub.Ping(ctx); err != nil {
				return err
			}
			continue
		default:
			return err
		}
		switch m := message.(type) {
		case *redis.Subscription:
			if m.Kind == "subscribe" {
				l.subscribed(m.Channel)
			}
		case *redis.Message:
			l.heard(m.Channel, m.Payload)
		}
	}
}

// readHint reads what prelude.lua publishes; anything else is passed over.
func readHint(topic, text string) (exchange.Hint, bool) {
	kind, rest, _ := strings.Cut(text, " ")
	if kind == "control" {
		sent, err := readScore(rest)
		return exchange.Hint{Source: topic, Kind: exchange.HintControl, Sent: instant(sent)}, err == nil && topic != ""
	}
	first, second, ok := strings.Cut(rest, " ")
	if !ok || topic == "" {
		return exchange.Hint{}, false
	}
	switch kind {
	case "due":
		us, err := strconv.ParseInt(first, 10, 64)
		sent, err2 := readScore(second)
		if err != nil || err2 != nil || us < 0 {
			return exchange.Hint{}, false
		}
		in := time.Duration(min(us, maxMicros)) * time.Microsecond
		return exchange.Hint{Source: topic, Kind: exchange.HintDue, In: in, Sent: instant(sent)}, true
	case "check":
		sent, err := readScore(first)
		if err != nil {
			return exchange.Hint{}, false
		}
		return exchange.Hint{Source: topic, Kind: exchange.HintCheck, ID: second, Sent: instant(sent)}, true
	default:
		return exchange.Hint{}, false
	}
}
