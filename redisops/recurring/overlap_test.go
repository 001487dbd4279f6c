package recurring

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/redisops/shards"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// The timer of the last run is where it was, on its way, or where it belongs while its topic is
// resharded. With Overlap skip or queue no run begins meanwhile, and one does when it is gone.
func TestOverlapWhileTopicIsResharded(t *testing.T) {
	t.Parallel()
	for _, counts := range [][]int{{1, 4}, {4, 3}, {3, 1}} {
		for _, way := range []reshardedRun{{}, {leased: true}, {apart: true}, {leased: true, apart: true}} {
			t.Run(fmt.Sprintf("%+v, from %d to %d", way, counts[0], counts[1]), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { reshardBesideRun(t, counts[0], counts[1], way) })
			})
		}
	}
}

// reshardedRun says how the last run of a schedule is while its topic is resharded.
type reshardedRun struct {
	leased bool
	apart  bool // the store takes the server for a Cluster, whose scripts do not read the shards
}

// reshardBesideRun reshards the topic of a schedule whose last run has not ended, and fires its
// next one after each command of that.
func reshardBesideRun(t *testing.T, from, to int, way reshardedRun) {
	t.Helper()
	rdb, _ := redistest.Embedded(t)
	f := newFixture(t, rdb)
	for _, err := range f.shards.Reshard(t.Context(), f.topic, from) {
		require.NoError(t, err)
	}
	<-time.After(time.Hour) // nothing lingers
	f.put("a", recur.Raw{}, raw("1"))
	first := f.firing("a", "1", "a@1")
	if way.leased {
		first.Runs[0].At = time.Now()
	}
	require.Equal(t, []Outcome{Fired}, f.fire("", Lock{}, first).Outcomes)
	place, err := f.shards.Place(t.Context(), f.topic, "a@1")
	require.NoError(t, err)
	if way.leased {
		source := f.timers.Source(place.Name, timers.SourceOptions{})
		require.Len(t, storetest.NewStream(source).Claim(t, 1).Leases, 1)
	}
	second := f.firing("a", "1", "a@2")
	second.Raw, second.Last = f.load("a"), "a@1"

	if way.apart {
		f.spread.Store(1)
	}
	options := *rdb.Options()
	other := redis.NewClient(&options)
	defer func() { require.NoError(t, other.Close()) }()
	var mu sync.Mutex // the resharding makes calls at once, and a call sets the places of its firings
	calls := 0
	other.AddHook(afterEach(func() {
		mu.Lock()
		defer mu.Unlock()
		calls++
		reply, err := f.Fire(t.Context(), "", Lock{}, []Firing{second})
		if err != nil || !slices.Equal(reply.Outcomes, []Outcome{Overlapping}) {
			t.Errorf("after command %d of the resharding: %q, %v", calls, reply.Outcomes, err)
		}
	}))
	s, err := timers.New(other, wakebelltype.Keys{Beat: f.prefix})
	require.NoError(t, err)
	resharding := shards.New(s)
	var p shards.Progress
	for range 20 { // fewer seconds than the lease lasts, whose end ends the resharding
		wait, err := resharding.ReshardStep(t.Context(), f.topic, to, &p)
		require.NoError(t, err)
		if p.Done {
			break
		}
		<-time.After(max(wait, time.Second))
	}
	require.Equal(t, way.leased, !p.Done)
	require.Equal(t, way.leased, p.Layout.Moves())
	require.Greater(t, calls, 10)
	waits, err := f.Waiting(t.Context(), f.topic, "a@1")
	require.NoError(t, err)
	require.True(t, waits)

	_, err = f.shards.Cancel(t.Context(), f.topic, "a@1")
	require.NoError(t, err)
	waits, err = f.Waiting(t.Context(), f.topic, "a@1")
	require.NoError(t, err)
	require.False(t, waits)
	require.Equal(t, []Outcome{Fired}, f.fire("", Lock{}, second).Outcomes, "it is gone")
}

// afterEach is a client hook that is called after each command.
type afterEach func()

// DialHook implements redis.Hook.
func (f afterEach) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (f afterEach) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		defer f()
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (f afterEach) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		defer f()
		return next(ctx, cmds)
	}
}
