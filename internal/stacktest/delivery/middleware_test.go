package delivery_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
)

// trace is a middleware that records when it is entered and the error that it
// receives.
func trace(mu *sync.Mutex, log *[]string, name string) wakebell.Middleware {
	return func(next wakebell.HandlerFunc) wakebell.HandlerFunc {
		return func(ctx context.Context, t wakebell.Timer[[]byte]) error {
			note := func(s string) { mu.Lock(); *log = append(*log, s); mu.Unlock() }
			note(name + " in")
			err := next(ctx, t)
			if err != nil {
				note(name + " " + err.Error())
			} else {
				note(name + " ok")
			}
			return err
		}
	}
}

func TestMiddlewareWrapsFromOutsideIn(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var log []string
	done := make(chan struct{})
	prefix := redistest.Name(t)
	topic := wakebell.NewTopic[string]("notes")
	sys := stacktest.Start(t, wakebell.Config{
		Middleware: []wakebell.Middleware{trace(&mu, &log, "config")},
		Handlers: wakebell.Group(prefix+":", []wakebell.Handler{
			wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[string]) error {
				defer close(done)
				require.Equal(t, prefix+":notes", timer.Topic)
				return nil
			}, wakebell.With(trace(&mu, &log, "first"), trace(&mu, &log, "second"))),
		}, trace(&mu, &log, "group")),
	})
	_, err := topic.Under(prefix+":").Schedule(t.Context(), sys.Client(), "hi")
	require.NoError(t, err)
	<-done
	require.NoError(t, sys.Stop())
	require.Equal(t, []string{
		"config in", "group in", "first in", "second in", "second ok", "first ok", "group ok", "config ok",
	}, log)
}

func TestMiddlewareMayChangeVerdict(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string](redistest.Name(t))
	var called bool
	sys := stacktest.Start(t, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error { called = true; return nil },
			wakebell.With(func(wakebell.HandlerFunc) wakebell.HandlerFunc {
				return func(context.Context, wakebell.Timer[[]byte]) error { return wakebell.Reject(errors.New("not today")) }
			})),
	}})
	_, err := topic.Schedule(t.Context(), sys.Client(), "hi", wakebell.ID("a"))
	require.NoError(t, err)
	require.Equal(t, "not today", stacktest.AwaitDead(t, sys, topic.Name()).Reason)
	require.False(t, called)
}

func TestMiddlewareReceivesUnreadableBody(t *testing.T) {
	t.Parallel()
	name := redistest.Name(t)
	seen := make(chan error, 1)
	sys := stacktest.Start(t, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(wakebell.NewTopic[stacktest.Invoice](name), func(context.Context, wakebell.Timer[stacktest.Invoice]) error { return nil },
			wakebell.DiscardRejected(),
			wakebell.With(func(next wakebell.HandlerFunc) wakebell.HandlerFunc {
				return func(ctx context.Context, t wakebell.Timer[[]byte]) error {
					err := next(ctx, t)
					seen <- err
					return err
				}
			})),
	}})
	_, err := wakebell.NewTopic[string](name).Schedule(t.Context(), sys.Client(), "no invoice")
	require.NoError(t, err)
	require.ErrorIs(t, <-seen, wakebell.ErrUnreadable)
	stacktest.AwaitDead(t, sys, name) // stored although rejected timers are discarded
}

func TestRetryOnLeaseExpiryRetriesAfterLease(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		topic := wakebell.NewTopic[string]("t")
		attempts := make(chan wakebell.Timer[string], 10)
		const ttl = 200 * time.Millisecond
		stacktest.Serve(t, rdb, wakebell.Handle(topic, func(_ context.Context, t wakebell.Timer[string]) error {
			attempts <- t
			if t.Attempt < 3 {
				return errors.New("again")
			}
			return nil
		}, wakebell.RetryOnLeaseExpiry(), wakebell.LeaseTTL(ttl), wakebell.RetryBackoff(time.Hour, time.Hour)))
		c, err := wakebell.NewClient(conntest.New(t, rdb, connection.Config{}))
		require.NoError(t, err)
		_, err = topic.Schedule(t.Context(), c, "x")
		require.NoError(t, err)
		var got []wakebell.Timer[string]
		for range 3 {
			got = append(got, <-attempts)
		}
		require.Equal(t, []int{1, 2, 3}, []int{got[0].Attempt, got[1].Attempt, got[2].Attempt})
		require.Zero(t, got[2].Failures)
		require.GreaterOrEqual(t, got[1].Delivered.Sub(got[0].Delivered), ttl)
	})
}

func TestNilMiddlewareIsRefused(t *testing.T) {
	t.Parallel()
	h := wakebell.Handle(wakebell.NewTopic[string]("x"), func(context.Context, wakebell.Timer[string]) error { return nil }, wakebell.With(nil))
	_, err := wakebell.New(actor.NewActorSystem(), conntest.New(t, redistest.Shared(t), connection.Config{}), wakebell.Config{
		Handlers:   []wakebell.Handler{h},
		Middleware: []wakebell.Middleware{nil},
	})
	require.ErrorIs(t, err, wakebell.ErrInvalid)
	require.ErrorContains(t, err, "With")
	require.ErrorContains(t, err, "Middleware")
}
