package scripts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/backoff"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	pingEvery       = 15 * time.Second
	listenBackoff   = 100 * time.Millisecond
	maxListenPause  = time.Second // until the connection is back, pollers find timers by polling
	channelsAtOnce  = 1000
	settledSession  = 30 * time.Second // a session this long resets the backoff
	silentPingLimit = 2                // unanswered pings that end a session
)

// ErrEnough ends a Listener without an error.
var ErrEnough = errors.New("enough")

// Listener maintains a subscription to channels, over one connection at a time.
type Listener struct {
	RDB       redis.UniversalClient
	Log       *slog.Logger
	PingEvery time.Duration // interval of pings on a silent connection; 0: 15 s
	Channels  []string
	Health    *Hearing // nil: problems are only logged

	// Confirmed is called for each (re)subscribed channel, Received for each
	// message, both from the goroutine of Run. An error ends the connection;
	// ErrEnough ends Run.
	Confirmed func(channel string) error
	Received  func(channel, text string) error
}

// Run listens until ctx ends, the client is closed, or the user may not subscribe;
// then the error wraps ErrChannelDenied.
func (l Listener) Run(ctx context.Context) error {
	if l.Health == nil {
		l.Health = &Hearing{}
	}
	defer l.Health.set("") // what begins later checks anew
	failures, pings := 0, echoPings
	for {
		began := time.Now()
		e := &echoCheck{l: l, every: time.Duration(pings) * cmp.Or(l.PingEvery, pingEvery)}
		err := l.once(ctx, e)
		switch {
		case errors.Is(err, ErrEnough):
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, wakebelltype.ErrChannelDenied):
			return err
		case redis.IsPermissionError(err):
			return fmt.Errorf("%w: %w", wakebelltype.ErrChannelDenied, err)
		case errors.Is(err, redis.ErrClosed):
			return Wrap(ctx, nil, err)
		}
		if time.Since(began) > settledSession {
			failures = 0
		}
		if pings = echoPings; errors.Is(err, errDeaf) && !e.heard { // it was deaf from the start

			pings = min(2*int(e.every/cmp.Or(l.PingEvery, pingEvery)), maxEchoPings)
		}
		level := slog.LevelWarn
		if failures > 0 || errors.Is(err, errDeaf) { // the first loss was logged as a warning
			level = slog.LevelDebug
		}
		pause := backoff.Jitter(backoff.Exponential(listenBackoff, failures, maxListenPause), 0.5, rand.Float64())
		failures++
		l.Log.Log(ctx, level, "subscription lost", "err", err, "pause", pause)
		Runner{RDB: l.RDB}.findMasters(ctx)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// once is one session: a connection from its subscription to its end.
func (l Listener) once(parent context.Context, e *echoCheck) error {
	ctx, end := context.WithCancelCause(parent)
	sub := l.RDB.Subscribe(ctx)
	defer func() { _ = sub.Close() }() // the session is over, so the error is of no use
	// Closing the connection interrupts a blocked read.
	stop := context.AfterFunc(ctx, func() { _ = sub.Close() })
	defer stop()
	var checks sync.WaitGroup
	checks.Go(func() { e.run(ctx, func() { end(errDeaf) }) })
	defer checks.Wait()
	defer end(nil)
	err := l.receive(ctx, sub, e)
	if cause := context.Cause(ctx); errors.Is(cause, errDeaf) {
		return cause
	}
	return err
}

// receive subscribes, and gives out what arrives until the connection ends.
func (l Listener) receive(ctx context.Context, sub *redis.PubSub, e *echoCheck) error {
	for part := range slices.Chunk(l.Channels, channelsAtOnce) {
		if err := sub.Subscribe(ctx, part...); err != nil {
			return err
		}
	}
	for silent := 0; ; {
		message, err := sub.ReceiveTimeout(ctx, cmp.Or(l.PingEvery, pingEvery))
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
		if err := l.take(message, e); err != nil {
			return err
		}
	}
}

func (l Listener) take(message any, e *echoCheck) error {
	switch m := message.(type) {
	case *redis.Subscription:
		if m.Kind == "subscribe" {
			return l.Confirmed(m.Channel)
		}
	case *redis.Message:
		if e.take(m.Payload) {
			return nil
		}
		return l.Received(m.Channel, m.Payload)
	}
	return nil
}
