package layout_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestTopicIsReshardedWhileItIsUsed changes the number of shards of a topic with timers,
// up and down, while two nodes handle it and timers are scheduled.
func TestTopicIsReshardedWhileItIsUsed(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string]("orders")
	handle := func(context.Context, wakebell.Timer[string]) error { return nil }
	cfg := wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(topic, handle, wakebell.PerKey(1))}}
	wakebelltest.RunWith(t, connection.Config{Logger: stacktest.Quiet}, cfg, func(t *testing.T, w *wakebelltest.World) {
		w.Start(cfg)
		c := w.Client()
		n := 0
		schedule := func(in time.Duration) {
			n++
			id := fmt.Sprintf("t%03d", n)
			opts := []wakebell.ScheduleOption{wakebell.ID(id), wakebell.In(in)}
			if n%2 == 0 {
				opts = append(opts, wakebell.Key(fmt.Sprint("customer ", n%10)))
			}
			_, err := topic.Schedule(t.Context(), c, id, opts...)
			require.NoError(t, err)
		}
		for i := range 100 {
			schedule(time.Duration(i) * 500 * time.Millisecond)
		}
		for i := range 50 {
			schedule(time.Hour + time.Duration(i)*time.Second)
		}
		for _, shards := range []int{4, 2} {
			began := time.Now()
			var last wakebelltype.Resharding
			for r, err := range c.Reshard(t.Context(), topic.Name(), shards) {
				require.NoError(t, err)
				if n < 300 {
					schedule(time.Duration(n%7) * time.Second)
				}
				last = r
			}
			require.True(t, last.Done)
			require.Zero(t, last.Left)
			require.Equal(t, shards, last.Layout.Shards)
			require.GreaterOrEqual(t, time.Since(began), 10*time.Second)
		}
		w.Advance(2 * time.Hour)
		delivered := w.Delivered(topic.Name())
		require.Len(t, delivered, n)
		ids := map[string]bool{}
		for _, d := range delivered {
			require.False(t, ids[d.ID], d.ID)
			ids[d.ID] = true
			require.LessOrEqual(t, d.At.Sub(d.Activation), time.Second, d.ID)
			require.GreaterOrEqual(t, d.At.Sub(d.Activation), time.Duration(0), d.ID)
		}
		layout, err := c.Shards(t.Context(), topic.Name())
		require.NoError(t, err)
		require.Equal(t, 2, layout.Shards)
		for r, err := range c.Reshard(t.Context(), topic.Name(), 2) {
			require.NoError(t, err)
			require.True(t, r.Done, "it has that number")
		}
	})
}
