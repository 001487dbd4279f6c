package shards

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestScriptHeadersMatchTheirUse(t *testing.T) { storetest.CheckHeaders(t, lua) }

// fixture is a store and a topic of its own with a number of shards.
type fixture struct {
	*Store
	topic  string
	shards int
}

// onEach runs a test on a topic without shards, on one with four, and on one with four
// whose slots a Cluster spreads over its masters.
func onEach(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	for _, shards := range []int{1, 4} {
		t.Run(fmt.Sprintf("%d shards", shards), func(t *testing.T) {
			t.Parallel()
			test(t, newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, shards))
		})
		t.Run(fmt.Sprintf("%d shards embedded", shards), func(t *testing.T) {
			t.Parallel()
			rdb, _ := redistest.Embedded(t)
			test(t, newFixture(t, rdb, wakebelltype.Keys{}, shards))
		})
	}
}

// newFixture uses a map and a backlog of its own, because tests that run together share the server.
func newFixture(t testing.TB, rdb redis.UniversalClient, keys wakebelltype.Keys, shards int) *fixture {
	t.Helper()
	names := timers.Names{Shards: redistest.Name(t) + ":shards", Backlog: redistest.Name(t) + ":backlog"}
	f := &fixture{Store: newStore(t, rdb, keys, names), topic: fmt.Sprintf("%s-%x", t.Name(), rand.Uint64()), shards: shards}
	if shards > 1 {
		l, err := f.Divide(t.Context(), f.topic, shards)
		require.NoError(t, err)
		require.Equal(t, shards, l.Count())
		l, err = f.layouts.change(t.Context(), f.topic, func(l sharding.Layout) (sharding.Layout, error) { return l.Settled(time.Now()), nil })
		require.NoError(t, err)
		require.False(t, l.Moving)
	}
	return f
}

func newStore(t testing.TB, rdb redis.UniversalClient, keys wakebelltype.Keys, names ...timers.Names) *Store {
	t.Helper()
	of, err := timers.New(rdb, keys, names...)
	require.NoError(t, err)
	return New(of)
}

// other returns a store on the same Redis that has not read the map yet.
func (f *fixture) other(t testing.TB) *Store {
	t.Helper()
	return newStore(t, f.timers.RDB, f.timers.Keys().Keys, f.timers.Keys().Names)
}

// schedule stores timers, which are due at once unless they have an instant.
func (f *fixture) schedule(t testing.TB, entries ...timers.Entry) []wakebelltype.Scheduled {
	t.Helper()
	for i := range entries {
		if entries[i].Payload == nil {
			entries[i].Payload = []byte("payload of " + entries[i].ID)
		}
	}
	done, err := f.Schedule(t.Context(), f.topic, entries...)
	require.NoError(t, err)
	return done
}

// numbered returns n timers that are due at instants in their order.
func numbered(n int) []timers.Entry {
	entries := make([]timers.Entry, n)
	for i := range entries {
		entries[i] = timers.Entry{ID: fmt.Sprintf("t%03d", i), At: hour.Add(time.Duration(i) * time.Second)}
	}
	return entries
}

var hour = time.Now().Truncate(time.Second).Add(time.Hour)

// claim claims the due timers of all shards, and returns the streams and leases.
func (f *fixture) claim(t testing.TB) (streams []*storetest.Stream, leases [][]exchange.Lease) {
	t.Helper()
	names, err := f.all(t.Context(), f.topic)
	require.NoError(t, err)
	for _, name := range names {
		stream := storetest.NewStream(f.timers.Source(name, timers.SourceOptions{}))
		streams = append(streams, stream)
		leases = append(leases, stream.Claim(t, 500).Leases)
	}
	return streams, leases
}

// deadLetterAll makes dead letters of all due timers.
func (f *fixture) deadLetterAll(t testing.TB) {
	t.Helper()
	streams, leases := f.claim(t)
	for i, stream := range streams {
		for _, l := range leases[i] {
			stream.Settle(t, storetest.Verdict(exchange.DeadLetter, l))
		}
	}
}
