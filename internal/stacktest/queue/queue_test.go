package queue_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

type purchase struct {
	ID    string `json:"id"`
	Cents int    `json:"cents"`
}

func TestQueueDeliversPublishedMessages(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	orders := queue.New[purchase](redistest.Name(t), queue.DeduplicateBy(func(o purchase) string { return o.ID }))
	c := stacktest.Client(t, rdb, connection.Config{})
	got := make(chan wakebell.Timer[purchase], 10)
	sys := stacktest.Serve(t, rdb, wakebell.HandleQueue(orders, func(_ context.Context, m wakebell.Timer[purchase]) error {
		got <- m
		return nil
	}, wakebell.KeepCompleted(5)))

	fresh, err := orders.Publish(t.Context(), c.Queues(), purchase{"a", 5})
	require.NoError(t, err)
	require.True(t, fresh)
	m := stacktest.Receive(t, got)
	require.Equal(t, purchase{"a", 5}, m.Body)
	require.Equal(t, orders.Name(), m.Topic)
	require.Equal(t, 1, m.Attempt)
	require.GreaterOrEqual(t, m.Lateness(), time.Duration(0))
	fresh, err = orders.Publish(t.Context(), c.Queues(), purchase{"a", 6})
	require.NoError(t, err)
	require.False(t, fresh, "suppressed by its key")
	fresh, err = orders.Publish(t.Context(), c.Queues(), purchase{"a", 7}, queue.DeduplicationKey("other"))
	require.NoError(t, err)
	require.True(t, fresh)
	require.Equal(t, 7, stacktest.Receive(t, got).Body.Cents)
	published, err := orders.PublishAll(t.Context(), c.Queues(), purchase{ID: "a"}, purchase{ID: "b"}, purchase{ID: "b"})
	require.NoError(t, err)
	require.Equal(t, []bool{false, true, false}, []bool{published[0].Fresh, published[1].Fresh, published[2].Fresh})
	require.Equal(t, published[1].ID, stacktest.Receive(t, got).ID)
	stacktest.Eventually(t, func() bool { return sys.Counters()[orders.Name()].Acked == 3 })
	st, err := c.Queues().Stats(t.Context(), orders.Keys())
	require.NoError(t, err)
	require.EqualValues(t, 3, st.Completed)
	left, err := queue.Drain(t.Context(), c.Queues(), orders.Keys())
	require.NoError(t, err)
	require.Zero(t, left.Pending+left.Processing)
}

func TestQueueRetriesRejectsAndRedrives(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	q := queue.New[string](redistest.Name(t))
	dead := make(chan wakebell.DeadLetter, 10)
	var attempts atomic.Int32
	sys := stacktest.Launch(t, stacktest.Build(t, rdb, wakebell.Config{
		OnDead: func(_ context.Context, d wakebell.DeadLetter) { dead <- d },
		Handlers: []wakebell.Handler{wakebell.HandleQueue(q, func(_ context.Context, m wakebell.Timer[string]) error {
			switch {
			case m.Body == "bad":
				return wakebell.Reject(errors.New("no good"))
			case m.Body == "always":
				return errors.New("again")
			case attempts.Add(1) == 1:
				return errors.New("once")
			}
			return nil
		}, wakebell.RetryBackoff(time.Millisecond, time.Millisecond), wakebell.MaxAttempts(3))},
	}))
	c := sys.Client()
	for _, body := range []string{"fine", "bad", "always"} {
		_, err := q.Publish(t.Context(), c.Queues(), body)
		require.NoError(t, err)
	}
	letters := map[string]wakebell.DeadLetter{}
	for range 2 {
		d := stacktest.Receive(t, dead)
		letters[string(d.Content.Body)] = d
	}
	require.Equal(t, "no good", letters["bad"].Reason)
	require.Equal(t, 1, letters["bad"].Attempts)
	require.Equal(t, "again", letters["always"].Reason)
	require.Equal(t, 3, letters["always"].Attempts)
	stacktest.Eventually(t, func() bool { return sys.Counters()[q.Name()].Acked == 1 })

	var listed []string
	for l, err := range c.Queues().DeadLetters(t.Context(), q.Keys(), wakebelltype.Page{}) {
		require.NoError(t, err)
		listed = append(listed, string(l.Payload)+": "+l.Reason)
	}
	require.ElementsMatch(t, []string{"bad: no good", "always: again"}, listed)
	shown, err := c.Queues().DeadLetter(t.Context(), q.Keys(), letters["bad"].Entry)
	require.NoError(t, err)
	require.Equal(t, letters["bad"].ID, shown.ID)
	n, err := queue.Redrive(t.Context(), c.Queues(), q.Keys(), q.RedriveOptions())
	require.NoError(t, err)
	require.EqualValues(t, 2, n)
	stacktest.Receive(t, dead)
	stacktest.Receive(t, dead)
}

// A dead letter is redriven under its deduplication key within the window of the key,
// and holds it again. If a newer message has the key, the dead letter stays.
func TestQueueRedrivesUnderDeduplicationKeys(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	q := queue.New[string](redistest.Name(t), queue.DeduplicateBy(func(s string) string { return s }))
	var good atomic.Bool
	sys := stacktest.Serve(t, rdb, wakebell.HandleQueue(q, func(context.Context, wakebell.Timer[string]) error {
		if good.Load() {
			return nil
		}
		return wakebell.Reject(errors.New("no good"))
	}))
	c := stacktest.Client(t, rdb, connection.Config{})
	_, err := q.PublishAll(t.Context(), c.Queues(), "a", "b")
	require.NoError(t, err)
	stacktest.Eventually(t, func() bool { return sys.Counters()[q.Name()].DeadLettered == 2 })
	good.Store(true)
	n, err := queue.Redrive(t.Context(), c.Queues(), q.Keys(), q.RedriveOptions())
	require.NoError(t, err)
	require.EqualValues(t, 2, n)
	stacktest.Eventually(t, func() bool { return sys.Counters()[q.Name()].Acked == 2 })
	fresh, err := q.Publish(t.Context(), c.Queues(), "a")
	require.NoError(t, err)
	require.False(t, fresh, "the window starts with the redrive")
}
