package life_test

import (
	"context"
	"errors"
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

func TestTimerReachesItsHandler(t *testing.T) {
	rdb := redistest.Shared(t)
	topic := wakebell.NewTopic[stacktest.Invoice](redistest.Name(t))
	got := make(chan wakebell.Timer[stacktest.Invoice], 1)
	sys, err := wakebell.New(actor.NewActorSystem(), conntest.New(t, rdb, connection.Config{}), wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, func(_ context.Context, t wakebell.Timer[stacktest.Invoice]) error {
			if t.Attempt == 1 {
				return errors.New("not yet")
			}
			got <- t
			return nil
		}, wakebell.RetryBackoff(time.Millisecond, time.Second)),
	}})
	require.NoError(t, err)
	require.NoError(t, sys.Start(t.Context()))
	c := sys.Client()
	id, err := topic.Schedule(t.Context(), c, stacktest.Invoice{Number: "7", Cents: 100}, wakebell.In(50*time.Millisecond), wakebell.ID("inv-7"), wakebell.Header("x-tenant", "acme"))
	require.NoError(t, err)
	require.Equal(t, "inv-7", id)
	timer := <-got
	require.Equal(t, "inv-7", timer.ID)
	require.Equal(t, stacktest.Invoice{Number: "7", Cents: 100}, timer.Body)
	require.Equal(t, 2, timer.Attempt)
	require.NoError(t, sys.Stop())
	_, _, err = c.Get(t.Context(), topic.Name(), "inv-7")
	require.ErrorIs(t, err, wakebell.ErrNotFound)
	t.Logf("%+v", sys.Counters())
}

// TestHandlersAreThoseOfNew checks that a System keeps its handlers when the caller uses the slice
// for another one.
func TestHandlersAreThoseOfNew(t *testing.T) {
	rdb := redistest.Shared(t)
	topic := wakebell.NewTopic[string](redistest.Name(t))
	got := make(chan string, 1)
	cfg := wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, func(_ context.Context, t wakebell.Timer[string]) error { got <- t.ID; return nil }),
	}}
	sys := stacktest.Build(t, rdb, cfg)
	cfg.Handlers[0] = wakebell.Handle(wakebell.NewTopic[string](topic.Name()+"-other"), func(context.Context, wakebell.Timer[string]) error { return nil })
	stacktest.Launch(t, sys)
	_, err := topic.Schedule(t.Context(), sys.Client(), "x", wakebell.ID("one"))
	require.NoError(t, err)
	require.Equal(t, "one", stacktest.Receive(t, got))
}
