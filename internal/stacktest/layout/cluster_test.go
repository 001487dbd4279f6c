package layout_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// topicsOn returns n topics with keys on the given third of the slots.
func topicsOn(t *testing.T, rdb *redis.Client, third, n int) []string {
	t.Helper()
	var topics []string
	for i := 0; len(topics) < n; i++ {
		topic := fmt.Sprint("topic-", i)
		slot, err := rdb.ClusterKeySlot(t.Context(), topic).Result()
		require.NoError(t, err)
		if int(slot)*3/16384 == third {
			topics = append(topics, topic)
		}
	}
	return topics
}

// deliveries records when each topic was last delivered.
type deliveries struct {
	mu   sync.Mutex
	last map[string]time.Time
}

func (d *deliveries) handle(_ context.Context, timer wakebell.Timer[[]byte]) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last[timer.Topic] = time.Now()
	return nil
}

// oldest returns the earliest of the last deliveries of all topics.
func (d *deliveries) oldest() (oldest time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, at := range d.last {
		if oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	}
	return oldest
}

// When the master of a shard is killed or does not answer, its topics are delivered
// again within 3 s after a replica has taken over. The bound leaves room for a machine
// that stalls; make cluster-failovers shows the figures: 0.1 to 1.7 s.
func TestDeliveriesResumeAfterClusterFailover(t *testing.T) {
	t.Parallel()
	for name, strike := range map[string]func(*redistest.Server){"killed": (*redistest.Server).Kill, "silent": (*redistest.Server).Pause} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resumeAfterFailover(t, strike)
		})
	}
}

func resumeAfterFailover(t *testing.T, strike func(*redistest.Server)) {
	const topics, every, last = 3, 50 * time.Millisecond, 90 * time.Second
	const soon = 8 * time.Second
	masters, replicas := redistest.ReplicatedCluster(t, 2*time.Second)
	rdb := masters.Client(t) // it waits 20 s for a silent server
	names := topicsOn(t, masters[0].Client(t), 0, topics)
	seen := &deliveries{last: map[string]time.Time{}}
	var handlers []wakebell.Handler
	var drafts []wakebell.Draft
	for _, name := range names {
		topic := wakebell.NewTopic[[]byte](name)
		handlers = append(handlers, wakebell.Handle(topic, seen.handle))
		seen.last[name] = time.Time{}.Add(1)
		for in := every; in < last; in += every {
			drafts = append(drafts, topic.Draft([]byte("x"), wakebell.In(in)))
		}
	}
	_, err := stacktest.Client(t, rdb, connection.Config{Keys: wakebelltype.Keys{HashTag: true}}).Schedule(t.Context(), drafts...)
	require.NoError(t, err)
	promoted := replicas[0].Client(t)
	stacktest.Eventually(t, func() bool {
		count := 0
		for _, name := range names {
			keys, err := promoted.Keys(t.Context(), "*{"+name+"}*").Result()
			require.NoError(t, err)
			count += len(keys)
		}
		return count >= 2*topics
	})
	stacktest.Launch(t, stacktest.BuildOn(t, conntest.New(t, rdb, connection.Config{Keys: wakebelltype.Keys{HashTag: true}}), wakebell.Config{Handlers: handlers}))
	stacktest.Eventually(t, func() bool { return seen.oldest().Year() > 1 })

	strike(masters[0])
	struck := time.Now()
	t.Cleanup(masters[0].Resume)
	stacktest.Eventually(t, func() bool {
		return promoted.Exists(t.Context(), "{"+names[0]+"}").Err() == nil
	})
	answers := time.Now()
	stacktest.Eventually(t, func() bool { return seen.oldest().After(answers) })
	t.Logf("new master answered after %v, deliveries %v later", answers.Sub(struck), time.Since(answers))
	require.Less(t, time.Since(answers), soon)
}
