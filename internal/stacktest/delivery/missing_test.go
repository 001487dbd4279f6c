package delivery_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestDeletedPayloadsAreReported checks that timers whose payloads were deleted by hand do not
// disappear: a node that waits for them, and only peeks meanwhile, makes each a dead letter
// when it is due, calls the hook, counts it and emits its event.
func TestDeletedPayloadsAreReported(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		topic := wakebell.NewTopic[string]("t")
		sys, c, received := stacktest.WithOnDead(t, rdb, wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error { return nil }))
		events := stacktest.Tail(t, c, topic.Name(), 1)
		for i, id := range []string{"a", "b"} {
			_, err := topic.Schedule(t.Context(), c, "body", wakebell.ID(id), wakebell.In(time.Hour+time.Duration(i)*time.Minute))
			require.NoError(t, err)
		}
		due := time.Now().Add(time.Hour)
		<-time.After(time.Minute)
		require.NoError(t, rdb.Del(t.Context(), "timers_payloads:t").Err())
		<-time.After(time.Hour + time.Minute)
		for _, id := range []string{"a", "b"} {
			got := stacktest.Receive(t, received)
			require.Equal(t, id, got.ID)
			require.Equal(t, "payload missing", got.Reason)
			require.WithinDuration(t, due, got.Activation, 0)
			require.Empty(t, got.Content.Body)
			letter, err := c.DeadLetter(t.Context(), topic.Name(), got.Entry)
			require.NoError(t, err)
			require.Equal(t, letter, got)
			due = due.Add(time.Minute)
		}
		for range 2 {
			e := stacktest.Receive(t, events)
			for e.Kind != wakebelltype.EventDead {
				e = stacktest.Receive(t, events)
			}
			require.Equal(t, "payload missing", e.Text)
		}
		counters := sys.Counters()[topic.Name()]
		require.EqualValues(t, 2, counters.DeadLettered)
		require.EqualValues(t, 2, counters.PayloadsMissing)
		require.Positive(t, counters.Peeks)
		require.Zero(t, counters.Delivered)
		require.NoError(t, sys.Stop())
	})
}

// TestDeletedTimelineIsReported checks that a node that finds payloads without a timer keeps
// them, logs an error again and again, and reports them until they have their timers again.
func TestDeletedTimelineIsReported(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		topic := wakebell.NewTopic[string]("t")
		var logs stacktest.Logged
		sys := stacktest.Launch(t, stacktest.BuildOn(t, conntest.New(t, rdb, connection.Config{Logger: logs.Logger()}), wakebell.Config{
			Handlers: []wakebell.Handler{wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error { return nil })},
		}))
		for i := range 150 {
			_, err := topic.Schedule(t.Context(), sys.Client(), "body", wakebell.ID(strconv.Itoa(i)), wakebell.In(time.Hour))
			require.NoError(t, err)
		}
		saved := rdb.ZRangeWithScores(t.Context(), "timers_timeline:t", 0, -1).Val()
		require.NoError(t, rdb.Del(t.Context(), "timers_timeline:t").Err())
		<-time.After(30 * time.Minute)
		require.EqualValues(t, 150, rdb.HLen(t.Context(), "timers_payloads:t").Val())
		require.EqualValues(t, 150, sys.Counters()["t"].OrphansHeld)
		const line = "timers were lost"
		require.Positive(t, logs.Count("key=timers_payloads:t count=150 payloads=150"))
		repeats := logs.Count(line)
		require.Greater(t, repeats, 5)
		require.LessOrEqual(t, repeats, 31, "at most one a minute")
		all, err := sys.Client().Overview(t.Context(), "t")
		require.NoError(t, err)
		require.Contains(t, all[0].Damage, "150 of 150 payloads have no timer")

		require.NoError(t, rdb.ZAdd(t.Context(), "timers_timeline:t", saved...).Err())
		<-time.After(5 * time.Minute)
		require.Zero(t, sys.Counters()["t"].OrphansHeld)
		repeats = logs.Count(line)
		<-time.After(time.Hour)
		require.EqualValues(t, 150, sys.Counters()["t"].Acked)
		require.Equal(t, repeats, logs.Count(line))
		require.NoError(t, sys.Stop())
	})
}
