package redisops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	return s.ListenQueues(ctx, topics, nil, deliver)
}

// listen delivers what comes on channels, each of which is a source's.
func (s *Timers) listen(ctx context.Context, channels map[string]string, deliver func(exchange.Hint)) error {
	if len(channels) == 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	names := slices.Sorted(maps.Keys(channels))
	return s.receive(ctx, names, func(channel string) error {
		deliver(exchange.Hint{Source: channels[channel], Kind: exchange.HintSubscribed})
		return nil
	}, func(channel, text string) error {
		if hint, ok := readHint(channels[channel], text); ok {
			deliver(hint)
		}
		return nil
	})
}

// receive subscribes to channels and stays so until ctx ends, over one
// connection at a time. Each confirmed (re)subscription is told to confirmed,
// each message to received; both are called from this goroutine. What they
// return ends the connection, and errEnough all of it.
func (s *Timers) receive(
	ctx context.Context, channels []string, confirmed func(channel string) error, received func(channel, text string) error,
) error {
	pause := listenBackoff
	for {
		began := time.Now()
		err := s.receiveOnce(ctx, channels, confirmed, received)
		switch {
		case errors.Is(err, errEnough):
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrChannelDenied):
			return err
		case redis.IsPermissionError(err):
			return fmt.Errorf("%w: %w", ErrChannelDenied, err)
		case errors.Is(err, redis.ErrClosed):
			return wrap(ctx, nil, err)
		}
		if time.Since(began) > settledSession {
			pause = listenBackoff
		}
		s.logger().WarnContext(ctx, "subscription lost", "error", err, "pause", pause)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause/2 + rand.N(pause)):
		}
		pause = min(2*pause, maxListenPause)
	}
}

// errEnough ends receive.
var errEnough = errors.New("enough")

// receiveOnce is one session: a connection from its subscription to its end.
func (s *Timers) receiveOnce(
	ctx context.Context, channels []string, confirmed func(channel string) error, received func(channel, text string) error,
) error {
	sub := s.rdb.Subscribe(ctx)
	defer func() { _ = sub.Close() }() // the session is over; nobody could use the error
	// Closing is what wakes a blocked read.
	stop := context.AfterFunc(ctx, func() { _ = sub.Close() })
	defer stop()

	for part := range slices.Chunk(channels, channelsAtOnce) {
		if err := sub.Subscribe(ctx, part...); err != nil {
			return err
		}
	}
	for silent := 0; ; {
		message, err := sub.ReceiveTimeout(ctx, cmp.Or(s.PingEvery, pingEvery))
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
			if m.Kind != "subscribe" {
				continue
			}
			if err := confirmed(m.Channel); err != nil {
				return err
			}
		case *redis.Message:
			if err := received(m.Channel, m.Payload); err != nil {
				return err
			}
		}
	}
}

// readHint reads what prelude.lua publishes; anything else is passed over.
func readHint(topic, text string) (exchange.Hint, bool) {
	kind, rest, _ := strings.Cut(text, " ")
	switch kind {
	case "control":
		sent, err := readScore(rest)
		return exchange.Hint{Source: topic, Kind: exchange.HintControl, Sent: instant(sent)}, err == nil && topic != ""
	case "tail":
		us, err := strconv.ParseInt(rest, 10, 64)
		in := time.Duration(min(us, maxMicros)) * time.Microsecond
		return exchange.Hint{Source: topic, Kind: exchange.HintTail, In: in}, err == nil && us > 0 && topic != ""
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
