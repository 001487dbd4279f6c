package queue_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/embedded"
	"github.com/wakebell/wakebell/internal/redistest"
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

// Redrive and Drain go by the masters, also where listings are read from replicas, which may
// be behind: here one that has received nothing yet.
func TestRedriveAndDrainDoNotReadFromReplicas(t *testing.T) {
	t.Parallel()
	master, behind := redistest.Shared(t), redistest.Start(t).Client(t)
	c, err := queue.NewClient(conntest.New(t, master, connection.Config{ReadFrom: behind}))
	require.NoError(t, err)
	name := wakebelltype.QueueKeys{Name: redistest.Name(t)}
	require.NoError(t, master.LPush(t.Context(), name.Name+"::dlq", "a", "b").Err())
	st, err := c.Stats(t.Context(), name)
	require.NoError(t, err)
	require.Zero(t, st.Dead, "the replica is behind")
	n, err := queue.Redrive(t.Context(), c, name, queue.RedriveOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 2, n)

	waiting, stop := context.WithCancel(t.Context())
	defer stop()
	master.AddHook(&secondLook{then: stop})
	left, err := queue.Drain(waiting, c, name)
	require.ErrorIs(t, err, context.Canceled, "two messages wait")
	require.EqualValues(t, 2, left.Pending)
}

// secondLook does something when a client is about to send its first command a second time.
type secondLook struct {
	then  func()
	first string
}

func (l *secondLook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *secondLook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (l *secondLook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		switch sent := fmt.Sprint(cmd.Args()); l.first {
		case "":
			l.first = sent
		case sent:
			l.then()
		}
		return next(ctx, cmd)
	}
}
