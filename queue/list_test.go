package queue_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/embedded"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Queues are listed with the names of their keys, in pages, without the prefix.
func TestQueuesAreListed(t *testing.T) {
	t.Parallel()
	server := embedded.Start()
	t.Cleanup(server.Close)
	rdb := server.Client()
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	c, err := queue.NewClient(conntest.New(t, rdb, connection.Config{Prefix: "shop."}))
	require.NoError(t, err)
	other, err := queue.NewClient(conntest.New(t, rdb, connection.Config{}))
	require.NoError(t, err)
	for _, q := range []queue.Queue[string]{
		queue.New[string]("mail"), queue.New[string]("audit", queue.KeySeparator("//"), queue.DeadLetterKey("failed")), queue.New[string]("zoo"),
	} {
		_, err := q.Publish(t.Context(), c, "x")
		require.NoError(t, err)
	}
	_, err = queue.New[string]("elsewhere").Publish(t.Context(), other, "x")
	require.NoError(t, err)
	require.NoError(t, rdb.SAdd(t.Context(), "timers_queues", "shop.b::x", " ").Err(), "not of Wakebell")

	var all []wakebelltype.QueueName
	for q, err := range c.List(t.Context(), wakebelltype.Page{}) {
		require.NoError(t, err)
		all = append(all, q)
	}
	require.Len(t, all, 3)
	require.Equal(t, wakebelltype.QueueKeys{Name: "audit", Separator: "//", DeadLetters: "failed"}, all[0].Keys)
	require.Equal(t, wakebelltype.QueueKeys{Name: "mail"}, all[1].Keys)
	for q, err := range c.List(t.Context(), wakebelltype.Page{After: all[0].Cursor, Limit: 1}) {
		require.NoError(t, err)
		require.Equal(t, all[1], q)
	}
	st, err := c.Stats(t.Context(), all[0].Keys)
	require.NoError(t, err)
	require.EqualValues(t, 1, st.Pending)
	for _, err := range (&queue.Client{}).List(t.Context(), wakebelltype.Page{}) {
		require.Error(t, err)
	}
}
