package wakebell_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestDeletedPayloadsAreReported checks that timers whose payloads were deleted by hand do not
// disappear: a node that waits for them, and only peeks meanwhile, makes each a dead letter
// when it is due, calls the hook, counts it and emits its event.
func TestDeletedPayloadsAreReported(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		topic := wakebell.NewTopic[string]("t")
		sys, c, received := withOnDead(t, rdb, wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error { return nil }))
		events := tail(t, c, topic.Name(), 1)
		for i, id := range []string{"a", "b"} {
			_, err := topic.Schedule(t.Context(), c, "body", wakebell.ID(id), wakebell.In(time.Hour+time.Duration(i)*time.Minute))
			require.NoError(t, err)
		}
		due := time.Now().Add(time.Hour)
		<-time.After(time.Minute)
		require.NoError(t, rdb.Del(t.Context(), "timers_payloads:t").Err())
		<-time.After(time.Hour + time.Minute)
		for _, id := range []string{"a", "b"} {
			got := receive(t, received)
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
			e := receive(t, events)
			for e.Kind != wakebelltype.EventDead {
				e = receive(t, events)
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
