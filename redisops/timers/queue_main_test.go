package timers

import (
	"context"
	"crypto/sha1" //nolint:gosec // a name, not a secret
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// onEachQueue runs a test on a real Redis and on the embedded one.
func onEachQueue(t *testing.T, test func(t *testing.T, f *queueFixture)) {
	t.Helper()
	storetest.OnEach(t, func(t *testing.T, rdb *redis.Client) {
		t.Helper()
		test(t, newQueueFixture(t, rdb))
	})
}

// queueFixture is a queue of its own, and a poller's view of it that counts the
// sequence of one stream.
type queueFixture struct {
	*Queue
	rdb         *redis.Client
	src         *QueueSource
	incarnation string
	sequence    uint64
}

func newQueueFixture(t testing.TB, rdb *redis.Client) *queueFixture {
	t.Helper()
	rdb.AddHook(storetest.Contract(t, queueLua))
	return queueOn(t, rdb, fmt.Sprintf("%s-%x", t.Name(), rand.Uint64()))
}

func queueOn(t testing.TB, rdb *redis.Client, name string) *queueFixture {
	t.Helper()
	s, err := New(rdb, Keys{})
	require.NoError(t, err)
	q, err := NewQueue(s, QueueName{Name: name})
	require.NoError(t, err)
	return (&queueFixture{Queue: q, rdb: rdb}).holder(QueueOptions{})
}

// holder gives a second poller of the same queue.
func (f *queueFixture) holder(o QueueOptions) *queueFixture {
	g := *f
	g.src, g.incarnation, g.sequence = f.Source(o), fmt.Sprintf("%x", rand.Uint64()), 0
	return &g
}

func (f *queueFixture) request(want int, ttl time.Duration) *exchange.Request {
	f.sequence++
	return &exchange.Request{Incarnation: f.incarnation, Sequence: f.sequence, Want: want, LeaseTTL: ttl}
}

func (f *queueFixture) run(t testing.TB, r *exchange.Request) *exchange.Reply {
	t.Helper()
	reply, err := f.src.Exchange(context.Background(), r)
	require.NoError(t, err)
	return reply
}

func (f *queueFixture) claim(t testing.TB, want int) *exchange.Reply {
	t.Helper()
	return f.run(t, f.request(want, time.Minute))
}

// lapse claims for as short as can be, and waits until the leases have ended.
func (f *queueFixture) lapse(t testing.TB, want int) []exchange.Lease {
	t.Helper()
	reply := f.run(t, f.request(want, time.Millisecond))
	f.pass(t, reply.Now.Add(2*time.Millisecond))
	return reply.Leases
}

// pass waits until Redis's clock is past an instant.
func (f *queueFixture) pass(t testing.TB, at time.Time) {
	t.Helper()
	for {
		now, err := f.rdb.Time(context.Background()).Result()
		require.NoError(t, err)
		if now.After(at) {
			return
		}
	}
}

func (f *queueFixture) settle(t testing.TB, list ...exchange.Settlement) *exchange.Reply {
	t.Helper()
	r := f.request(0, time.Minute)
	r.Settle = list
	return f.run(t, r)
}

func (f *queueFixture) extend(t testing.TB, ttl time.Duration, leases ...exchange.Lease) *exchange.Reply {
	t.Helper()
	r := f.request(0, ttl)
	for _, l := range leases {
		r.Extend = append(r.Extend, held(l))
	}
	return f.run(t, r)
}

// put publishes payloads, none of which is a duplicate.
func (f *queueFixture) put(t testing.TB, payloads ...string) {
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

func (f *queueFixture) list(t testing.TB, key string) []string {
	t.Helper()
	values, err := f.rdb.LRange(context.Background(), key, 0, -1).Result()
	require.NoError(t, err)
	return values
}

// left are the keys of the queue that are there, without our own.
func (f *queueFixture) left(t testing.TB) []string {
	t.Helper()
	keys, err := f.rdb.Keys(context.Background(), f.Name()+"::*").Result()
	require.NoError(t, err)
	var theirs []string
	for _, k := range keys {
		if name := k[len(f.Name())+2:]; len(name) < 9 || name[:9] != "wakebell:" {
			theirs = append(theirs, name)
		}
	}
	return theirs
}

func payloads(leases []exchange.Lease) []string {
	out := make([]string, len(leases))
	for i, l := range leases {
		out[i] = string(l.Payload)
	}
	return out
}

// redisHash is how a dead letter of Python's is named.
func redisHash(payload string) string {
	sum := sha1.Sum([]byte(payload)) //nolint:gosec // as queue_letters.lua names it
	return hex.EncodeToString(sum[:])
}
