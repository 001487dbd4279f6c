package schedule_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltest"
)

// TestNoCountsCountsNothing stores timers and messages in every way that a client and a
// node have, and lets the node deliver them.
func TestNoCountsCountsNothing(t *testing.T) {
	t.Parallel()
	topic, runs, mail := wakebell.NewTopic[string]("topic"), wakebell.NewTopic[string]("runs"), queue.New[string]("mail")
	handled := map[string]int{}
	handle := func(_ context.Context, t wakebell.Timer[string]) error {
		handled[t.Topic]++
		return nil
	}
	wakebelltest.RunWith(t, connection.Config{NoCounts: true}, wakebell.Config{
		Scheduler: &recurring.SchedulerConfig{
			Owner: "test", Schedules: []recurring.Schedule{runs.Recurring("hourly", recurring.Rule{Every: time.Hour}, "run")},
		},
		Handlers: []wakebell.Handler{
			wakebell.Handle(topic, handle), wakebell.Handle(runs, handle), wakebell.HandleQueue(mail, handle),
		},
	}, func(t *testing.T, w *wakebelltest.World) {
		ctx, c := t.Context(), stacktest.Client(t, w.Redis(), connection.Config{NoCounts: true})
		for _, c := range []*wakebell.Client{c, w.Client()} {
			_, err := topic.Schedule(ctx, c, "body")
			require.NoError(t, err)
			_, err = mail.Publish(ctx, c.Queues(), "message")
			require.NoError(t, err)
			_, err = c.Schedules().RunNow(ctx, "hourly")
			require.NoError(t, err)
			n, err := c.Schedules().Backfill(ctx, "hourly", time.Now().Add(-2*time.Hour), time.Now().Add(-time.Minute))
			require.NoError(t, err)
			require.Positive(t, n)
		}
		w.Advance(150 * time.Minute)
		require.GreaterOrEqual(t, handled["runs"], 4)
		require.Equal(t, []int{2, 2}, []int{handled["topic"], handled["mail"]})
		require.Empty(t, w.Redis().Keys(ctx, "*counts*").Val())
	})
}
