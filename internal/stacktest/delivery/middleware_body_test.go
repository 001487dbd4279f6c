package delivery_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

// shouted is a middleware that changes a body in place, and then replaces it.
func shouted(next wakebell.HandlerFunc) wakebell.HandlerFunc {
	return func(ctx context.Context, t wakebell.Timer[[]byte]) error {
		copy(t.Body, bytes.ToUpper(t.Body))
		t.Body = append(t.Body[:len(t.Body):len(t.Body)], '!')
		return next(ctx, t)
	}
}

// The handler receives the Body that the middleware leaves. Every attempt begins with
// the original body, which is also the body of the dead letter.
func TestMiddlewareChangesBody(t *testing.T) {
	t.Parallel()
	name := redistest.Name(t)
	topic, queue := wakebell.NewTopic[string](name), queue.New[string](name+".queue")
	type seen struct{ body, raw string }
	got := make(chan seen, 10)
	handle := func(_ context.Context, timer wakebell.Timer[string]) error {
		got <- seen{timer.Body, string(timer.Raw)}
		if timer.Attempt == 1 {
			return wakebell.RetryIn(0)
		}
		return wakebell.Reject(errors.New("no"))
	}
	sys := stacktest.Start(t, wakebell.Config{
		Middleware: []wakebell.Middleware{shouted},
		Handlers:   []wakebell.Handler{wakebell.Handle(topic, handle), wakebell.HandleQueue(queue, handle)},
	})
	_, err := topic.Schedule(t.Context(), sys.Client(), "hello")
	require.NoError(t, err)
	for range 2 {
		require.Equal(t, seen{"HELLO!", "hello"}, stacktest.Receive(t, got))
	}
	require.Equal(t, "hello", string(stacktest.AwaitDead(t, sys, name).Content.Body))

	_, err = queue.Publish(t.Context(), sys.Client().Queues(), "hello")
	require.NoError(t, err)
	for range 2 {
		require.Equal(t, seen{"HELLO!", "hello"}, stacktest.Receive(t, got))
	}
	stacktest.Eventually(t, func() bool {
		for l, err := range sys.Client().Queues().DeadLetters(t.Context(), queue.Keys(), wakebelltype.Page{}) {
			require.NoError(t, err)
			return string(l.Payload) == "hello"
		}
		return false
	})
}

func TestMiddlewareChangesBodyOfLease(t *testing.T) {
	t.Parallel()
	got := make(chan *messages.Lease, 1)
	sys, topic := stacktest.Forwarding(t, redistest.Shared(t), stacktest.To(func(c actor.Context) {
		if lease, ok := c.Message().(*messages.Lease); ok {
			c.Respond(lease.Ack())
			got <- lease
		}
	}), wakebell.With(func(next wakebell.HandlerFunc) wakebell.HandlerFunc {
		return func(ctx context.Context, t wakebell.Timer[[]byte]) error {
			t.Body = []byte(`{"Number":"8","Cents":1}`)
			return next(ctx, t)
		}
	}))
	_, err := topic.Schedule(t.Context(), sys.Client(), stacktest.Invoice{Number: "7", Cents: 100})
	require.NoError(t, err)
	body, err := topic.Read(stacktest.Receive(t, got))
	require.NoError(t, err)
	require.Equal(t, stacktest.Invoice{Number: "8", Cents: 1}, body)
}
