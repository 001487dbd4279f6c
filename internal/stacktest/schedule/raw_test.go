package schedule_test

import (
	"context"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
)

func TestTopicOfBytesAcceptsEveryContentType(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	raw := wakebell.NewTopic[[]byte](redistest.Name(t))
	got := make(chan wakebell.Timer[[]byte], 4)
	sys, err := wakebell.New(actor.NewActorSystem(), conntest.New(t, rdb, connection.Config{}), wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(raw, func(_ context.Context, t wakebell.Timer[[]byte]) error { got <- t; return nil }),
	}})
	require.NoError(t, err)
	c := sys.Client()
	_, err = c.Schedule(t.Context(),
		raw.Draft([]byte("%PDF"), wakebell.ID("pdf"), wakebell.ContentType("application/pdf")),
		raw.Draft([]byte{0xff}, wakebell.ID("none")),
		wakebell.NewTopic[string](raw.Name()).Draft("hi", wakebell.ID("text")),
		wakebell.NewTopic[map[string]int](raw.Name()).Draft(map[string]int{"a": 1}, wakebell.ID("json")),
	)
	require.NoError(t, err)
	require.NoError(t, sys.Start(t.Context()))
	seen := map[string]string{}
	for range 4 {
		timer := <-got
		require.Equal(t, timer.Raw, timer.Body)
		seen[timer.ID] = timer.ContentType + " " + string(timer.Body)
	}
	require.NoError(t, sys.Stop())
	require.Equal(t, map[string]string{
		"pdf":  "application/pdf %PDF",
		"none": " \xff",
		"text": "text/plain hi",
		"json": `application/json {"a":1}`,
	}, seen)
}

func TestContentTypeIsForBytesAlone(t *testing.T) {
	t.Parallel()
	c, err := wakebell.NewClient(conntest.New(t, redistest.Shared(t), connection.Config{}))
	require.NoError(t, err)
	_, err = wakebell.NewTopic[string]("x").Schedule(t.Context(), c, "hi", wakebell.ContentType("text/html"))
	require.ErrorIs(t, err, wakebell.ErrInvalid)
	_, err = wakebell.NewTopic[[]byte]("x").Schedule(t.Context(), c, nil, wakebell.ContentType(strings.Repeat("x", 1<<16)))
	require.ErrorIs(t, err, wakebell.ErrInvalid)
}

func TestForgetLeavesNothingOfTopic(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	topic := wakebell.NewTopic[string](redistest.Name(t))
	c, err := wakebell.NewClient(conntest.New(t, rdb, connection.Config{}))
	require.NoError(t, err)
	for range 2 { // a topic may be used again
		_, err = topic.Schedule(t.Context(), c, "x")
		require.NoError(t, err)
		require.True(t, rdb.SIsMember(t.Context(), "timers_topics", topic.Name()).Val())
		require.NoError(t, rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: "timers_dead:" + topic.Name(), Values: []string{"id", "x"}}).Err())

		require.NoError(t, c.Forget(t.Context(), topic.Name()))
		left, err := rdb.Keys(t.Context(), "timers_*:"+topic.Name()+"*").Result()
		require.NoError(t, err)
		require.Empty(t, left)
		require.False(t, rdb.SIsMember(t.Context(), "timers_topics", topic.Name()).Val())
	}
}
