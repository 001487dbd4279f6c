package layout_test

import (
	"context"
	"fmt"
	"sync"
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

// TestTopicIsReshardedOnCluster changes the number of shards of a topic up and down on a
// Cluster, with two nodes and a client that schedules. Each change is interrupted once.
func TestTopicIsReshardedOnCluster(t *testing.T) {
	t.Parallel()
	masters := redistest.Cluster(t)
	keys := wakebelltype.Keys{HashTag: true}
	topic := wakebell.NewTopic[string]("orders")
	var mu sync.Mutex
	handled := map[string]int{}
	handle := func(_ context.Context, timer wakebell.Timer[string]) error {
		mu.Lock()
		defer mu.Unlock()
		handled[timer.ID]++
		return nil
	}
	for range 2 {
		stacktest.Launch(t, stacktest.BuildOn(t, conntest.New(t, masters.Client(t), connection.Config{Keys: keys}), wakebell.Config{
			Handlers: []wakebell.Handler{wakebell.Handle(topic, handle, wakebell.PerKey(1))},
		}))
	}
	c := stacktest.Client(t, masters.Client(t), connection.Config{Keys: keys})
	n := 0
	schedule := func(in time.Duration) {
		n++
		id := fmt.Sprintf("t%04d", n)
		opts := []wakebell.ScheduleOption{wakebell.ID(id), wakebell.In(in)}
		if n%2 == 0 {
			opts = append(opts, wakebell.Key(fmt.Sprint("customer ", n%10)))
		}
		_, err := topic.Schedule(t.Context(), c, id, opts...)
		require.NoError(t, err)
	}
	for i := range 200 {
		schedule(time.Duration(i) * 100 * time.Millisecond)
	}
	for range 100 {
		schedule(time.Hour)
	}
	for _, shards := range []int{4, 2} {
		for _, err := range c.Reshard(t.Context(), topic.Name(), shards) {
			require.NoError(t, err)
			break // the process ends after the first step
		}
		var last wakebelltype.Resharding
		for r, err := range c.Reshard(t.Context(), topic.Name(), shards) {
			require.NoError(t, err)
			schedule(time.Duration(n%5) * time.Second)
			last = r
		}
		require.True(t, last.Done)
		require.Equal(t, shards, last.Layout.Shards)
	}
	stacktest.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(handled) == n-100
	})
	mu.Lock()
	defer mu.Unlock()
	for id, times := range handled {
		require.Equal(t, 1, times, id)
	}
	stats, err := c.Stats(t.Context(), topic.Name())
	require.NoError(t, err)
	require.EqualValues(t, 100, stats.Pending)
}
