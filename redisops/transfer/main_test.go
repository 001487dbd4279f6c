package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/redisops/shards"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const limit = 1 << 20 // of a payload

// fixture is a store with a map of layouts of its own, and topics of its own.
type fixture struct {
	*shards.Store
	timers *timers.Timers
	topic  string
}

func newFixture(t testing.TB, rdb redis.UniversalClient) *fixture {
	t.Helper()
	of, err := timers.New(rdb, wakebelltype.Keys{}, timers.Names{Shards: redistest.Name(t) + ":shards"})
	require.NoError(t, err)
	return &fixture{shards.New(of), of, redistest.Name(t)}
}

// onEach runs a test on topics with one shard and with four, of a Redis, of the embedded
// one, and of a Cluster.
func onEach(t *testing.T, test func(t *testing.T, f *fixture, shards int)) {
	t.Helper()
	masters := redistest.Cluster(t)
	for _, n := range []int{1, 4} {
		t.Run(fmt.Sprintf("%d shards", n), func(t *testing.T) {
			t.Parallel()
			test(t, newFixture(t, redistest.Shared(t)), n)
		})
		t.Run(fmt.Sprintf("%d shards embedded", n), func(t *testing.T) {
			t.Parallel()
			rdb, _ := redistest.Embedded(t)
			test(t, newFixture(t, rdb), n)
		})
		t.Run(fmt.Sprintf("%d shards on a cluster", n), func(t *testing.T) {
			t.Parallel()
			test(t, newFixture(t, masters.Client(t)), n)
		})
	}
}

func (f *fixture) schedule(t testing.TB, entries ...timers.Entry) {
	t.Helper()
	for i := range entries {
		if entries[i].Payload == nil {
			entries[i].Payload = []byte("payload of " + entries[i].ID)
		}
	}
	_, err := f.Schedule(t.Context(), f.topic, entries...)
	require.NoError(t, err)
}

// claim claims the due timers of all shards of a topic, at most one of a key.
func (f *fixture) claim(t testing.TB, topic string) (streams []*storetest.Stream, leases [][]exchange.Lease) {
	t.Helper()
	names, err := f.Physical(t.Context(), topic)
	require.NoError(t, err)
	for _, name := range names {
		stream := storetest.NewStream(f.timers.Source(name, timers.SourceOptions{}))
		r := stream.Request(500, time.Minute)
		r.Flow.PerKey = 1
		streams, leases = append(streams, stream), append(leases, stream.Run(t, r).Leases)
	}
	return streams, leases
}

// export returns the lines of a topic and how many there are of each type.
func (f *fixture) export(t testing.TB, topic string) (text string, last wakebelltype.Exported) {
	t.Helper()
	var b bytes.Buffer
	for e, err := range Export(t.Context(), f.Store, topic, "name", &b) {
		require.NoError(t, err)
		last = e
	}
	require.True(t, last.Done)
	return b.String(), last
}

// load imports lines to a topic.
func (f *fixture) load(ctx context.Context, text string, o wakebelltype.ImportOptions) (last wakebelltype.Imported, err error) {
	for i, failed := range Import(ctx, f.Store, strings.NewReader(text), o, limit, sameName, movable) {
		last, err = i, failed
	}
	return last, err
}

func (f *fixture) loaded(t testing.TB, text string, o wakebelltype.ImportOptions) wakebelltype.Imported {
	t.Helper()
	last, err := f.load(t.Context(), text, o)
	require.NoError(t, err)
	require.True(t, last.Done)
	return last
}

// body returns the lines of an export but the first, in the order of their bytes.
func body(text string) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")[1:]
	slices.Sort(lines)
	return lines
}

// idsOf returns the ids of the lines of a type, sorted.
func idsOf(t testing.TB, text, kind string) (ids []string) {
	t.Helper()
	for line := range strings.Lines(text) {
		var l struct {
			Type string `json:"type"`
			ID   string `json:"id"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &l), line)
		if l.Type == kind {
			ids = append(ids, l.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

func sameName(topic string) (string, error) { return topic, nil }

func movable([]byte) error { return nil }
