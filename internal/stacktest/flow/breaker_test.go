package flow_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestBreakerPausesTopicWhileItsHandlerFails follows a breaker through all states: it
// opens, one timer fails, one timer succeeds, and the topic goes on.
func TestBreakerPausesTopicWhileItsHandlerFails(t *testing.T) {
	t.Parallel()
	topic, other := wakebell.NewTopic[int]("topic"), wakebell.NewTopic[int]("other")
	delivered, others, healed := 0, 0, false
	handle := func(context.Context, wakebell.Timer[int]) error {
		delivered++
		<-time.After(100 * time.Millisecond)
		if !healed {
			return errors.New("no")
		}
		return nil
	}
	wakebelltest.RunWith(t, connection.Config{Logger: stacktest.Quiet}, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, handle, wakebell.MaxConcurrent(1), wakebell.RetryBackoff(time.Hour, time.Hour),
			wakebell.Breaker(wakebelltype.Breaker{FailureRatio: 0.5, Deliveries: 4, OpenFor: 10 * time.Second})),
		wakebell.Handle(other, func(context.Context, wakebell.Timer[int]) error { others++; return nil }),
	}}, func(t *testing.T, w *wakebelltest.World) {
		for i := range 20 {
			_, err := topic.Schedule(t.Context(), w.Client(), i, wakebell.In(time.Second))
			require.NoError(t, err)
		}
		system := w.Nodes()[0].System()
		state := func() string {
			h := system.Health(t.Context())
			require.True(t, h.Ready)
			for _, v := range h.Topics {
				if v.Topic == "topic" {
					return fmt.Sprint(v.Breaker, " ", len(h.Problems))
				}
			}
			return ""
		}
		require.Equal(t, "closed 0", state())
		w.Advance(6 * time.Second)
		require.Equal(t, 4, delivered)
		require.Equal(t, "open 1", state())
		_, err := other.Schedule(t.Context(), w.Client(), 1)
		require.NoError(t, err)
		w.Advance(4 * time.Second)
		require.Equal(t, 1, others, "other topics go on")
		w.Advance(5 * time.Second)
		require.Equal(t, 5, delivered, "one timer is tried")
		require.Equal(t, "open 1", state())
		require.EqualValues(t, 2, system.Counters()["topic"].BreakerOpened)
		healed = true
		w.Advance(20 * time.Second)
		require.Equal(t, 20, delivered)
		require.Equal(t, "closed 0", state())
		require.Zero(t, system.Counters()["topic"].BreakerOpen)
	})
}

// TestWhatSaysNothingAboutHandlerDoesNotOpenBreaker has bodies that cannot be decoded.
func TestWhatSaysNothingAboutHandlerDoesNotOpenBreaker(t *testing.T) {
	t.Parallel()
	wakebelltest.RunWith(t, connection.Config{Logger: stacktest.Quiet}, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(wakebell.NewTopic[int]("topic"), func(context.Context, wakebell.Timer[int]) error { return nil },
			wakebell.Breaker(wakebelltype.Breaker{FailureRatio: 0.01, Deliveries: 1})),
	}}, func(t *testing.T, w *wakebelltest.World) {
		for range 10 {
			_, err := wakebell.NewTopic[string]("topic").Schedule(t.Context(), w.Client(), "text")
			require.NoError(t, err)
		}
		w.Advance(time.Minute)
		require.Len(t, w.Dead("topic"), 10)
		require.Zero(t, w.Nodes()[0].System().Counters()["topic"].BreakerOpened)
	})
}

func TestBreakerIsValidated(t *testing.T) {
	t.Parallel()
	for _, b := range []wakebelltype.Breaker{{}, {FailureRatio: 1.1}, {FailureRatio: 0.5, Deliveries: -1}, {FailureRatio: 0.5, Window: 1}, {FailureRatio: 0.5, OpenFor: -1}} {
		_, err := wakebell.New(stacktest.ActorSystem(), nil, wakebell.Config{Handlers: []wakebell.Handler{
			wakebell.Handle(wakebell.NewTopic[int]("t"), func(context.Context, wakebell.Timer[int]) error { return nil }, wakebell.Breaker(b)),
		}})
		require.ErrorContains(t, err, "Breaker.", "%+v", b)
	}
}
