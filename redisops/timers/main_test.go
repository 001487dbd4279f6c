package timers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// onEach runs a test on a real Redis, on the embedded one, and on a shard of a topic of a
// Cluster.
func onEach(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	storetest.OnEach(t, func(t testing.TB, rdb *redis.Client) *fixture {
		t.Helper()
		return newFixture(t, rdb)
	}, test)
	t.Run("shard", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, redistest.SharedCluster(t))
		const shards = 4
		test(t, f.on(sharding.Name(f.topic, shards, rand.IntN(shards))))
	})
}

// fixture is a store, a topic of its own, and a source of it with one stream.
type fixture struct {
	*Timers
	*storetest.Stream
	rdb   redis.UniversalClient
	topic string
	key   TopicKeys
	src   *TimerSource
}

func newFixture(t testing.TB, rdb redis.UniversalClient) *fixture {
	t.Helper()
	rdb.AddHook(storetest.Contract(t, lua, storetest.OfTopic))
	s, err := New(rdb, wakebelltype.Keys{})
	require.NoError(t, err)
	return (&fixture{Timers: s, rdb: rdb}).on(fmt.Sprintf("%s-%x", t.Name(), rand.Uint64()))
}

// on returns a fixture of the same store with another topic.
func (f *fixture) on(topic string) *fixture {
	g := &fixture{Timers: f.Timers, rdb: f.rdb, topic: topic, key: f.keys.Of(topic)}
	return g.holder(SourceOptions{})
}

// holder returns a second poller of the same topic.
func (f *fixture) holder(o SourceOptions) *fixture {
	g := *f
	g.src = f.Source(f.topic, o)
	g.Stream = storetest.NewStream(g.src)
	return &g
}

func (f *fixture) schedule(t testing.TB, entries ...Entry) []wakebelltype.Scheduled {
	t.Helper()
	out, err := f.Schedule(context.Background(), f.topic, entries...)
	require.NoError(t, err)
	return out
}

// scheduleKeyed schedules timers with an idempotency key.
func (f *fixture) scheduleKeyed(ctx context.Context, key *Key, entries ...Entry) ([]wakebelltype.Scheduled, error) {
	b, err := checkedBatch(f.topic, entries)
	if err != nil {
		return nil, err
	}
	return f.Write(ctx, key, b)
}

// due schedules timers that are due now, one after the other.
func (f *fixture) due(t testing.TB, ids ...string) {
	t.Helper()
	base := time.Now().Add(-time.Hour)
	for i, id := range ids {
		f.schedule(t, Entry{ID: id, Payload: []byte("body of " + id), At: base.Add(time.Duration(i) * time.Second)})
	}
}

func (f *fixture) get(t testing.TB, id string) Timer {
	t.Helper()
	timer, err := f.Get(context.Background(), f.topic, id)
	require.NoError(t, err)
	return timer
}

// do sends a command to Redis.
func (f *fixture) do(t testing.TB, args ...any) {
	t.Helper()
	require.NoError(t, f.rdb.Do(context.Background(), args...).Err())
}

// mistype replaces what a key has by a list, a type that no key has.
func (f *fixture) mistype(t testing.TB, key string) {
	t.Helper()
	f.do(t, "del", key)
	f.do(t, "rpush", key, "x")
}

// next returns the next value of a channel.
func next[T any](t *testing.T, values <-chan T) T {
	t.Helper()
	select {
	case v := <-values:
		return v
	case <-time.After(30 * time.Second):
		require.FailNow(t, "no value within 30 s")
		return *new(T)
	}
}
