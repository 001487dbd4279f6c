package layout_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
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

// TestTopicWithShardsIsOneTopic handles timers of all shards, and sees one topic.
func TestTopicWithShardsIsOneTopic(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	topic := wakebell.NewTopic[string](redistest.Name(t))
	const n = 100
	handled := make(chan wakebell.Timer[string], 2*n)
	handle := func(_ context.Context, timer wakebell.Timer[string]) error {
		handled <- timer
		return nil
	}
	s := stacktest.Serve(t, rdb, wakebell.Handle(topic, handle, wakebell.Shards(4), wakebell.MaxConcurrent(8)))
	c := s.Client()
	shards, err := c.Shards(t.Context(), topic.Name())
	require.NoError(t, err)
	require.Equal(t, 4, shards.Shards)

	drafts := make([]wakebell.Draft, n)
	for i := range drafts {
		drafts[i] = topic.Draft(fmt.Sprint(i), wakebell.ID(fmt.Sprint("t", i)))
	}
	scheduled, err := c.Schedule(t.Context(), drafts...)
	require.NoError(t, err)
	require.Equal(t, "t99", scheduled[99].ID)
	ids := map[string]bool{}
	for range n {
		timer := <-handled
		require.Equal(t, topic.Name(), timer.Topic)
		ids[timer.ID] = true
	}
	require.Len(t, ids, n)
	require.Eventually(t, func() bool {
		counters := s.Counters()
		return len(counters) == 1 && counters[topic.Name()].Acked == n
	}, 10*time.Second, 10*time.Millisecond)

	health := s.Health(t.Context())
	require.True(t, health.Ready, health.Problems)
	require.Len(t, health.Topics, 1)
	require.Equal(t, topic.Name(), health.Topics[0].Topic)

	require.NoError(t, s.PauseLocal(topic.Name()))
	require.NoError(t, s.RetuneLocal(topic.Name(), wakebell.MaxConcurrent(2)))
	overview, err := c.Overview(t.Context(), topic.Name())
	require.NoError(t, err)
	require.Equal(t, 1, overview[0].Nodes)
	require.NoError(t, s.Remove(topic.Name()))
	require.Empty(t, s.Health(t.Context()).Topics)
	require.NoError(t, s.Add(t.Context(), wakebell.Handle(topic, handle)))
	_, err = topic.Schedule(t.Context(), c, "again")
	require.NoError(t, err)
	require.Equal(t, "again", (<-handled).Body)
}

// TestNodeSaysItsStateOfAllShards has handlers of several shards run, and asks for the
// state of the node, which any of its pollers may answer.
func TestNodeSaysItsStateOfAllShards(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	topic := wakebell.NewTopic[string](redistest.Name(t))
	const n = 8
	end := make(chan struct{})
	defer close(end)
	s := stacktest.Serve(t, rdb, wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error {
		<-end
		return nil
	}, wakebell.Shards(4), wakebell.MaxConcurrent(n)))
	drafts := make([]wakebell.Draft, n)
	for i := range drafts {
		drafts[i] = topic.Draft("", wakebell.ID(fmt.Sprint("t", i)))
	}
	_, err := s.Client().Schedule(t.Context(), drafts...)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s.Counters()[topic.Name()].Held == n }, 10*time.Second, 10*time.Millisecond)
	states := 0 // of which a shard alone would never have one
	for e, err := range s.Client().Tail(t.Context(), topic.Name()) {
		require.NoError(t, err)
		if e.Kind == wakebelltype.EventState && e.State.Running == n {
			if states++; states == 4 {
				return
			}
		}
	}
}

// TestShardsShareMaxConcurrent has more shards than handlers, and a backlog in each.
func TestShardsShareMaxConcurrent(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	topic := wakebell.NewTopic[string](redistest.Name(t))
	const n, most = 60, 2
	var running, highest atomic.Int64
	handled := make(chan string, n)
	s := stacktest.Serve(t, rdb, wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[string]) error {
		now := running.Add(1)
		defer running.Add(-1)
		for {
			seen := highest.Load()
			if now <= seen || highest.CompareAndSwap(seen, now) {
				break
			}
		}
		<-time.After(10 * time.Millisecond) // handlers of other shards would run meanwhile
		handled <- timer.ID
		return nil
	}, wakebell.Shards(8), wakebell.MaxConcurrent(most)))
	drafts := make([]wakebell.Draft, n)
	for i := range drafts {
		drafts[i] = topic.Draft("x")
	}
	_, err := s.Client().Schedule(t.Context(), drafts...)
	require.NoError(t, err)
	for range n {
		<-handled
	}
	require.LessOrEqual(t, highest.Load(), int64(most))
}

// TestStoredNumberOfShardsApplies starts a node with another number, which handles the
// topic as it is, and one that does not name a number.
func TestStoredNumberOfShardsApplies(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	topic := wakebell.NewTopic[string](redistest.Name(t))
	handled := make(chan string, 10)
	handle := func(_ context.Context, timer wakebell.Timer[string]) error {
		handled <- timer.Body
		return nil
	}
	first := stacktest.Serve(t, rdb, wakebell.Handle(topic, handle, wakebell.Shards(2)))
	require.NoError(t, first.Stop())
	for _, opts := range [][]wakebell.HandlerOption{{wakebell.Shards(8)}, nil} {
		s := stacktest.Serve(t, rdb, wakebell.Handle(topic, handle, opts...))
		n, err := s.Client().Shards(t.Context(), topic.Name())
		require.NoError(t, err)
		require.Equal(t, 2, n.Shards)
		_, err = topic.Schedule(t.Context(), s.Client(), "body")
		require.NoError(t, err)
		require.Equal(t, "body", <-handled)
		require.NoError(t, s.Stop())
	}
}

// TestTopicWithTimersIsNotDivided keeps the timers of a topic where its nodes and Python
// workers find them.
func TestTopicWithTimersIsNotDivided(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	topic := wakebell.NewTopic[string](redistest.Name(t))
	c, err := wakebell.NewClient(conntest.New(t, rdb, connection.Config{}))
	require.NoError(t, err)
	_, err = topic.Schedule(t.Context(), c, "later", wakebell.ID("later"), wakebell.In(time.Hour))
	require.NoError(t, err)
	stacktest.Serve(t, rdb, wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error { return nil }, wakebell.Shards(4)))
	n, err := c.Shards(t.Context(), topic.Name())
	require.NoError(t, err)
	require.Equal(t, 1, n.Shards)
	_, err = topic.Schedule(t.Context(), c, "b", wakebell.ID("b"), wakebell.In(2*time.Hour))
	require.NoError(t, err)
	var ids []string
	for info, err := range c.List(t.Context(), topic.Name(), wakebell.Filter{}, wakebelltype.Page{}) {
		require.NoError(t, err)
		ids = append(ids, info.ID)
	}
	require.True(t, slices.Equal([]string{"later", "b"}, ids))
}

// TestNodeFollowsLayout divides a topic while a node handles it. Timers where the topic
// was before are handled as well.
func TestNodeFollowsLayout(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	topic := wakebell.NewTopic[string](redistest.Name(t))
	handled := make(chan string, 100)
	handle := func(_ context.Context, timer wakebell.Timer[string]) error {
		handled <- timer.Body
		return nil
	}
	running := stacktest.Serve(t, rdb, wakebell.Handle(topic, handle))
	stale, err := wakebell.NewClient(conntest.New(t, rdb, connection.Config{}))
	require.NoError(t, err)
	_, err = topic.Schedule(t.Context(), stale, "plain")
	require.NoError(t, err)
	require.Equal(t, "plain", <-handled)
	stacktest.Eventually(t, func() bool { // a topic with timers is not divided
		stats, err := stale.Stats(t.Context(), topic.Name())
		require.NoError(t, err)
		return stats.Total == 0
	})

	divides := stacktest.Serve(t, rdb, wakebell.Handle(topic, handle, wakebell.Shards(4), wakebell.MaxConcurrent(1)))
	require.NoError(t, divides.PauseLocal(topic.Name()))
	stacktest.Eventually(t, func() bool { // the client may have read the layout just before
		n, err := running.Client().Shards(t.Context(), topic.Name())
		require.NoError(t, err)
		return n.Shards == 4
	})
	for i := range 20 { // by a client that may have read the layout before
		_, err = topic.Schedule(t.Context(), stale, fmt.Sprint(i))
		require.NoError(t, err)
	}
	bodies := map[string]bool{}
	for range 20 {
		bodies[<-handled] = true
	}
	require.Len(t, bodies, 20)
}

// TestTopicWithShardsOnCluster spreads the shards over the masters.
func TestTopicWithShardsOnCluster(t *testing.T) {
	t.Parallel()
	masters := redistest.Cluster(t)
	topic := wakebell.NewTopic[string](redistest.Name(t))
	const n = 60
	handled := make(chan string, 2*n)
	handlers := []wakebell.Handler{wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[string]) error {
		handled <- timer.ID
		return nil
	}, wakebell.Shards(4))}
	s := stacktest.Launch(t, stacktest.BuildOn(t, conntest.New(t, masters.Client(t), connection.Config{Keys: wakebelltype.Keys{HashTag: true}}), wakebell.Config{Handlers: handlers}))
	drafts := make([]wakebell.Draft, n)
	for i := range drafts {
		drafts[i] = topic.Draft("x", wakebell.ID(fmt.Sprint(i)))
	}
	_, err := s.Client().Schedule(t.Context(), drafts...)
	require.NoError(t, err)
	ids := map[string]bool{}
	for range n {
		ids[<-handled] = true
	}
	require.Len(t, ids, n)
	used := 0
	for _, address := range masters.Addrs() {
		master := redis.NewClient(&redis.Options{Addr: address})
		keys, err := master.Keys(t.Context(), "timers_counts:*"+topic.Name()+"*").Result()
		require.NoError(t, err)
		require.NoError(t, master.Close())
		used += min(len(keys), 1)
	}
	require.Greater(t, used, 1, "several masters have shards")
}
