package remote_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestSubscriberHandlesQueue(t *testing.T) {
	t.Parallel()
	orders, cfg := queue.New[string](redistest.Name(t), queue.KeySeparator("/")), withToken()
	cfg.Queues = []wakebelltype.QueueKeys{orders.Keys()}
	n := serve(t, cfg)
	c, ctx := dial(t, n), t.Context()
	var handled sync.Map
	end := subscribe(t, c, remote.Subscription{Queue: orders.Keys(), Name: "s", Credits: 10}, func(_ context.Context, l *messages.Lease) error {
		body, err := orders.Read(l)
		switch {
		case err != nil || body == "never":
			return wakebell.Reject(errors.Join(errors.New("never"), err))
		case body == "again" && l.GetAttempt() == 1:
			return wakebell.RetryIn(time.Millisecond)
		}
		handled.Store(body, l.GetAttempt())
		return nil
	})
	for _, body := range []string{"one", "never", "again"} {
		_, err := orders.Publish(ctx, c.Queues(), body)
		require.NoError(t, err)
	}
	eventually(t, func() bool {
		st, err := n.Client().Queues().Stats(ctx, orders.Keys())
		return err == nil && st.Pending+st.Processing == 0 && st.Dead == 1
	})
	attempt, _ := handled.Load("again")
	require.EqualValues(t, 2, attempt)

	topic := remote.Subscription{Topic: orders.Name(), Name: "other"}
	never := func(context.Context, *messages.Lease) error { return nil }
	require.ErrorIs(t, c.Subscribe(ctx, topic, never), wakebell.ErrConflict, "it is a queue")
	both := remote.Subscription{Topic: "x", Queue: orders.Keys(), Name: "other"}
	require.ErrorIs(t, c.Subscribe(ctx, both, never), wakebell.ErrInvalid)
	require.NoError(t, end())
}

// A queue keeps no results: over HTTP an ack with one is refused, and from a session the message
// is done all the same.
func TestAckOfMessageWithResultMakesNoDeadLetter(t *testing.T) {
	t.Parallel()
	n := serveHTTP(t, withToken())
	orders := queue.New[string](redistest.Name(t))
	none := func(processing int64) {
		t.Helper()
		eventually(t, func() bool {
			st, err := n.Client().Queues().Stats(t.Context(), orders.Keys())
			return err == nil && st.Pending == 0 && st.Processing == processing
		})
		st, err := n.Client().Queues().Stats(t.Context(), orders.Keys())
		require.NoError(t, err)
		require.Zero(t, st.Dead)
	}
	_, err := orders.Publish(t.Context(), n.Client().Queues(), "x")
	require.NoError(t, err)
	path := "/v1/queues/" + orders.Name() + "/leases"
	lease := path + "/" + n.claim(t, path, `{"wait":"1m"}`)[0]["token"].(string)
	require.Equal(t, http.StatusBadRequest, n.http(t, "POST", lease+":ack", `{"result":{"body":"done"}}`).status)
	none(1)
	n.http(t, "POST", lease+":ack", "").ok(t)
	none(0)

	k := talk(t, n, secret)
	sub := subscription(orders.Name(), 1)
	sub.Queue = &messages.Queue{}
	require.IsType(t, &messages.SubscribeResponse{}, k.ask(sub))
	_, err = orders.Publish(t.Context(), n.Client().Queues(), "y")
	require.NoError(t, err)
	var held *messages.Lease
	for held == nil {
		for _, m := range k.replies() {
			if l, ok := m.(*messages.Leases); ok {
				held = l.GetLeases()[0]
			}
		}
	}
	none(1)
	k.say(&messages.Verdicts{Topic: orders.Name(), Subscriber: sub.GetSubscriber(), Verdicts: []*messages.Verdict{{
		Id: held.GetId(), Kind: &messages.Verdict_Ack{Ack: &messages.Ack{Delivery: held.GetDelivery(), Result: &messages.Content{Body: []byte("done")}}},
	}}})
	none(0)
}
