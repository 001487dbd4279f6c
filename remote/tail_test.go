package remote_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltype"
)

// watch tails a topic, and returns the kinds of its events until the error that ends
// it.
func watch(ctx context.Context, c wakebell.Operator, topic string) (events <-chan wakebelltype.Event, ended <-chan error) {
	told, end := make(chan wakebelltype.Event, 100), make(chan error, 1)
	go func() {
		for e, err := range c.Tail(ctx, topic) {
			if err != nil {
				end <- err
				return
			}
			told <- e
		}
		end <- nil
	}()
	return told, end
}

func TestTailOverNetwork(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string]("orders")
	n := prefixed(t, wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error { return wakebell.Reject(nil) }))
	ctx, cancel := context.WithCancel(t.Context())
	events, ended := watch(ctx, dial(t, n), topic.Name())
	until := func(kind wakebelltype.EventKind) wakebelltype.Event {
		for {
			if e := receive(t, events); e.Kind == kind {
				return e
			}
		}
	}
	until(wakebelltype.EventNode)
	_, err := topic.Schedule(t.Context(), n.Client(), "x", wakebell.ID("x"))
	require.NoError(t, err)
	delivered := until(wakebelltype.EventDelivered)
	require.Equal(t, "x", delivered.ID)
	require.Equal(t, topic.Name(), delivered.Topic)
	require.WithinDuration(t, time.Now(), delivered.At, time.Minute)
	require.NotEmpty(t, until(wakebelltype.EventDead).Entry)
	cancel()
	require.ErrorIs(t, receive(t, ended), context.Canceled)
}

// Streams end when their link breaks. A call with one answer is repeated.
func TestOperationsOverLinkThatBreaks(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	link := through(t, n.server.Address())
	c := dialAt(t, link.Addr().String())
	events, ended := watch(t.Context(), c, n.topic.Name())
	receive(t, events)
	link.cut()
	require.ErrorIs(t, receive(t, ended), wakebell.ErrUnavailable)
	_, err := c.Control(t.Context(), n.topic.Name())
	require.NoError(t, err)
}
