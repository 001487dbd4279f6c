package redisops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	pingEvery       = 15 * time.Second
	listenBackoff   = 100 * time.Millisecond
	maxListenPause  = time.Second // what is scheduled meanwhile is found by polling
	channelsAtOnce  = 1000
	settledSession  = 30 * time.Second // a session this long resets the backoff
	silentPingLimit = 2                // pings without an answer that end a session
)

// errEnough ends a listener.
var errEnough = errors.New("enough")

// listener keeps a subscription to channels, over one connection at a time.
type listener struct {
	rdb       redis.UniversalClient
	log       *slog.Logger
	pingEvery time.Duration // of a silent connection; 0: the default
	channels  []string

	// Each confirmed (re)subscription is told to confirmed, each message to
	// received; both are called from the goroutine of run. What they return ends
	// the connection, and errEnough all of it.
	confirmed func(channel string) error
	received  func(channel, text string) error
}

// run listens until ctx ends, or the client is closed, or the user may not
// subscribe: ErrChannelDenied.
func (l listener) run(ctx context.Context) error {
	pause := listenBackoff
	for {
		began := time.Now()
		err := l.once(ctx)
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
		level := slog.LevelWarn
		if pause > listenBackoff { // logged when it was lost
			level = slog.LevelDebug
		}
		l.log.Log(ctx, level, "subscription lost", "err", err, "pause", pause)
		runner{rdb: l.rdb}.findMasters(ctx)
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
		message, err := sub.ReceiveTimeout(ctx, cmp.Or(l.pingEvery, pingEvery))
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
		if err := l.take(message); err != nil {
			return err
		}
	}
}

func (l listener) take(message any) error {
	switch m := message.(type) {
	case *redis.Subscription:
		if m.Kind == "subscribe" {
			return l.confirmed(m.Channel)
		}
	case *redis.Message:
		return l.received(m.Channel, m.Payload)
	}
	return nil
}
