package remote_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/remote"
)

// TestPayloadsAreEncryptedFromClientToSubscriber has a node without keys between them.
func TestPayloadsAreEncryptedFromClientToSubscriber(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	chain := func(id string) *payload.Chain {
		key, err := payload.NewKey(id, bytes.Repeat([]byte{'k'}, 32))
		require.NoError(t, err)
		return &payload.Chain{RequireEncryption: true, Codecs: []payload.Codec{payload.Compress(50), payload.Encrypt(key)}}
	}
	connect := func(p *payload.Chain) *remote.Client {
		c, err := remote.Dial(t.Context(), n.server.Address(), conntest.WithoutRedis(t, connection.Config{Logger: quiet, Payloads: p}), remote.DialConfig{
			Config:   remote.Config{Token: secret},
			DeadLink: time.Minute,
		})
		require.NoError(t, err)
		t.Cleanup(c.Close)
		return c
	}
	c := connect(chain("k1"))
	for range 2 { // sent again with the same key, encrypted anew
		_, err := n.topic.Schedule(remote.WithKey(t.Context(), "once"), c, "hello", wakebell.ID("a"), wakebell.In(50*time.Millisecond))
		require.NoError(t, err)
	}
	stored, err := n.topic.Get(t.Context(), c, "a")
	require.NoError(t, err)
	require.Equal(t, "hello", stored.Body)
	require.NotContains(t, string(stored.Content.Body), "hello")
	_, err = n.topic.Get(t.Context(), n.Client(), "a")
	require.ErrorIs(t, err, wakebell.ErrUnreadable)

	q := queue.New[string](n.topic.Name() + ".queue")
	_, err = q.Publish(t.Context(), c.Queues(), "message")
	require.NoError(t, err)
	got := make(chan string, 10)
	handle := func(_ context.Context, l *messages.Lease) error {
		got <- l.GetContentType() + " " + string(l.GetBody())
		return nil
	}
	subscribe(t, c, remote.Subscription{Topic: n.topic.Name(), Name: "s"}, handle)
	require.Equal(t, "text/plain hello", receive(t, got))
	subscribe(t, c, remote.Subscription{Queue: q.Keys(), Name: "s"}, handle)
	require.Contains(t, receive(t, got), "message")

	_, err = n.topic.Schedule(t.Context(), n.Client(), "plain", wakebell.ID("b"))
	require.NoError(t, err)
	eventually(t, func() bool {
		st, err := n.Client().Stats(t.Context(), n.topic.Name())
		return err == nil && st.Dead == 1
	}, "a plain body is refused")
}
