package timers

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// A schedule that is repeated because its reply was lost is counted once; one that changes
// something is counted.
func TestRepeatedScheduleIsCountedOnce(t *testing.T) {
	t.Parallel()
	embedded, _ := redistest.Embedded(t)
	for _, rdb := range []*redis.Client{redistest.Shared(t), embedded} {
		s, err := New(rdb, wakebelltype.Keys{})
		require.NoError(t, err)
		topic, ctx := redistest.Name(t), t.Context()
		at, counted := time.Now().Add(time.Hour).Truncate(time.Microsecond), int64(0)
		schedule := func(what string, changed int64, entries ...Entry) {
			t.Helper()
			_, err := s.Schedule(ctx, topic, entries...)
			require.NoError(t, err)
			counted += changed
			require.Equal(t, counted, sum(t, s, topic, time.Hour).Scheduled, what)
		}
		a, b := Entry{ID: "a", Payload: []byte("one"), At: at}, Entry{ID: "b", At: at.Add(time.Second)}
		schedule("new", 2, a, b)
		schedule("repeated", 0, a, b)
		schedule("repeated together with a new one", 1, Entry{ID: "c", At: at}, a, b)
		a.Payload = []byte("two")
		schedule("another payload of the same size", 1, a, b)
		a.Payload = []byte("three")
		schedule("another payload", 1, a, b)
		a.At = at.Add(time.Minute)
		schedule("another instant", 1, a, b)
		schedule("a delay, which is another instant", 1, Entry{ID: "b", In: time.Hour})

		key := Entry{ID: "k", Key: "customer", Payload: []byte("x"), At: at}
		schedule("new with a key", 1, key)
		schedule("repeated with its key", 0, key)
		schedule("repeated without its key", 0, Entry{ID: "k", Payload: key.Payload, At: at})
		key.Key = "other"
		schedule("another key", 1, key)

		once := Entry{ID: "once", Payload: []byte("x"), At: at, Once: time.Minute}
		schedule("new with Once", 1, once)
		schedule("repeated with Once", 0, once)
		once.Once = 0
		schedule("repeated without Once", 0, once)

		due := Entry{ID: "due", Payload: []byte("x"), At: time.Now().Add(-time.Second).Truncate(time.Microsecond)}
		schedule("new and due", 1, due)
		schedule("repeated while it is due", 0, due)
		stream := storetest.NewStream(s.Source(topic, SourceOptions{}))
		require.Len(t, stream.Claim(t, 10).Leases, 1)
		schedule("while it runs", 1, due)
	}
}

// A keyed timer that is parked is the same timer if it is scheduled again.
func TestRepeatedScheduleOfParkedTimerIsCountedOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t))
	at := time.Now().Add(-time.Second).Truncate(time.Microsecond)
	entries := []Entry{{ID: "a", Key: "k", Payload: []byte("x"), At: at}, {ID: "b", Key: "k", Payload: []byte("x"), At: at}}
	_, err := f.Schedule(t.Context(), f.topic, entries...)
	require.NoError(t, err)
	require.EqualValues(t, 2, sum(t, f.Timers, f.topic, time.Hour).Scheduled)
	stream := storetest.NewStream(f.Source(f.topic, SourceOptions{}))
	r := stream.Request(10, time.Minute)
	r.Flow = exchange.Flow{PerKey: 1}
	require.Len(t, stream.Run(t, r).Leases, 1, "the other one is parked")
	_, err = f.Schedule(t.Context(), f.topic, entries[1])
	require.NoError(t, err)
	require.EqualValues(t, 2, sum(t, f.Timers, f.topic, time.Hour).Scheduled)
}
