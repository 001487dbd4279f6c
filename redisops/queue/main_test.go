package queue

import (
	"cmp"
	"context"
	"crypto/sha1" //nolint:gosec // a name, not a secret
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// onEach runs a test on a real Redis, on the embedded one, and on a Cluster.
func onEach(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	storetest.OnEach(t, func(t testing.TB, rdb *redis.Client) *fixture {
		t.Helper()
		return newFixture(t, rdb)
	}, test)
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		test(t, newFixture(t, redistest.SharedCluster(t)))
	})
}

// fixture is a queue of its own, and a poller's source of it with one stream.
type fixture struct {
	*Queue
	*storetest.Stream
	rdb redis.UniversalClient
	src *Source
}

func newFixture(t testing.TB, rdb redis.UniversalClient) *fixture {
	t.Helper()
	rdb.AddHook(storetest.Contract(t, lua, namedKey))
	return queueOn(t, rdb, fmt.Sprintf("%s-%x", t.Name(), rand.Uint64()))
}

func queueOn(t testing.TB, rdb redis.UniversalClient, name string) *fixture {
	t.Helper()
	s, err := timers.New(rdb, wakebelltype.Keys{})
	require.NoError(t, err)
	q, err := New(s, wakebelltype.QueueKeys{Name: name})
	require.NoError(t, err)
	return (&fixture{Queue: q, rdb: rdb}).holder(SourceOptions{})
}

// holder returns a second poller of the same queue.
func (f *fixture) holder(o SourceOptions) *fixture {
	g := *f
	g.src = f.Source(o)
	g.Stream = storetest.NewStream(g.src)
	return &g
}

// lapse claims with the shortest lease, and waits until the leases have expired.
func (f *fixture) lapse(t testing.TB, want int) []exchange.Lease {
	t.Helper()
	reply := f.Run(t, f.Request(want, time.Millisecond))
	f.pass(t, reply.Now.Add(2*time.Millisecond))
	return reply.Leases
}

// pass waits until Redis's clock is past an instant.
func (f *fixture) pass(t testing.TB, at time.Time) {
	t.Helper()
	for {
		now, err := f.rdb.Time(context.Background()).Result()
		require.NoError(t, err)
		if now.After(at) {
			return
		}
	}
}

// put publishes payloads, none of which is a duplicate.
func (f *fixture) put(t testing.TB, payloads ...string) {
	t.Helper()
	messages := make([]Message, len(payloads))
	for i, p := range payloads {
		messages[i] = NewMessage([]byte(p), "")
	}
	out, _, err := f.Publish(context.Background(), PublishOptions{}, messages...)
	require.NoError(t, err)
	for _, p := range out {
		require.True(t, p.Fresh)
	}
}

func (f *fixture) list(t testing.TB, key string) []string {
	t.Helper()
	values, err := f.rdb.LRange(context.Background(), key, 0, -1).Result()
	require.NoError(t, err)
	return values
}

// left returns the existing keys of the queue, without Wakebell's own.
func (f *fixture) left(t testing.TB) []string {
	t.Helper()
	server := f.rdb
	if cluster, clustered := server.(*redis.ClusterClient); clustered {
		master, err := cluster.MasterForKey(t.Context(), f.keys.pending)
		require.NoError(t, err)
		server = master
	}
	base := strings.TrimSuffix(f.keys.pending, "pending")
	keys, err := server.Keys(t.Context(), base+"*").Result()
	require.NoError(t, err)
	var found []string
	for _, k := range keys {
		if name := strings.TrimPrefix(k, base); !strings.HasPrefix(name, "wakebell:") {
			found = append(found, name)
		}
	}
	return found
}

func payloads(leases []exchange.Lease) []string {
	out := make([]string, len(leases))
	for i, l := range leases {
		out[i] = string(l.Payload)
	}
	return out
}

// redisHash returns the Entry of a dead letter that Python wrote.
func redisHash(payload string) string {
	sum := sha1.Sum([]byte(payload)) //nolint:gosec // as lua/list_dead.lua names it
	return hex.EncodeToString(sum[:])
}

// headerWords maps words of script headers to parts of key names that differ.
var headerWords = map[string]string{
	"deadlines": "processing:lease_deadlines", "tokens": "processing:lease_tokens",
	"counter": "processing:lease_token_counter", "counts": "processing:delivery_counts",
	"refs": "processing:claim_result_refs", "ids": "processing:claim_result_ids",
	"backrefs": "processing:claim_result_backrefs",
	"places":   "wakebell:places", "records": "wakebell:records", "gone": "wakebell:gone", "hint": "wakebell:hint",
	"throughput": "wakebell:counts", "exchange": "wakebell:exchange:", "published": "wakebell:published:",
	"freed": "wakebell:freed", "flow": "wakebell:flow",
}

// namedKey reports whether a key is the one that headers call word.
func namedKey(key, word string) bool {
	if word == "freed" && strings.HasSuffix(key, "::pending") {
		return true // no message of a publish has a deduplication key
	}
	return strings.Contains(key, "::"+cmp.Or(headerWords[word], word))
}
