package queue

import (
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

func TestQueueIsListedMeasuredAndPurged(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.publish(t, PublishOptions{OwnKeys: true}, NewMessage([]byte("a"), "k"), NewMessage([]byte("b"), ""))
		f.put(t, "c")
		require.NoError(t, f.rdb.LPush(t.Context(), f.keys.pending, "\x1eRMQ1:bad").Err())
		lease := f.Claim(t, 1).Leases[0]
		st, err := f.Stats(t.Context())
		require.NoError(t, err)
		require.WithinDuration(t, st.Now, st.Oldest, time.Minute)
		st.Oldest, st.Now = time.Time{}, time.Time{}
		require.Equal(t, wakebelltype.QueueStats{Pending: 3, Processing: 1}, st)

		waiting, err := f.Messages(t.Context(), false, 0, 2)
		require.NoError(t, err)
		require.Len(t, waiting, 2)
		require.Equal(t, "b", string(waiting[0].Payload))
		waiting, err = f.Messages(t.Context(), false, 2, 2)
		require.NoError(t, err)
		require.NotEmpty(t, waiting[0].Fault)
		held, err := f.Messages(t.Context(), true, 0, 10)
		require.NoError(t, err)
		require.Equal(t, lease.ID, held[0].ID)
		require.Equal(t, 1, held[0].Deliveries)
		require.WithinDuration(t, time.Now().Add(time.Minute), held[0].Deadline, time.Minute/2)

		n, err := f.Purge(t.Context(), false)
		require.NoError(t, err)
		require.EqualValues(t, 3, n)
		n, err = f.Purge(t.Context(), true)
		require.NoError(t, err)
		require.EqualValues(t, 1, n)
		require.Equal(t, []string{"processing:lease_token_counter"}, f.left(t), "the key is freed")
		require.Equal(t, exchange.Lost, f.Settle(t, storetest.Verdict(exchange.Ack, lease)).Refused[0].Reason)
	})
}

func TestQueueNamesThatAreRefused(t *testing.T) {
	t.Parallel()
	s, err := timers.New(redistest.Shared(t), wakebelltype.Keys{})
	require.NoError(t, err)
	for _, name := range []wakebelltype.QueueKeys{
		{},
		{Name: " \t"},
		{Name: "a\x00"},
		{Name: "a::b"},
		{Name: strings.Repeat("x", 513)},
		{Name: "a-b", Separator: "-"},
		{Name: "a", Separator: " "},
		{Name: "a", DeadLetters: " "},
	} {
		_, err := New(s, name)
		require.ErrorIs(t, err, wakebelltype.ErrInvalid, "%q", name)
	}
	q, err := New(s, wakebelltype.QueueKeys{Name: "a:b", Separator: "/", DeadLetters: "other"})
	require.NoError(t, err)
	require.Equal(t, "a:b/processing:lease_tokens", q.keys.tokens)
	require.Equal(t, "other", q.keys.dlq)
}

func TestQueueKeysShareSlot(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	plain, err := timers.New(rdb, wakebelltype.Keys{})
	require.NoError(t, err)
	tagged, err := timers.New(rdb, wakebelltype.Keys{HashTag: true})
	require.NoError(t, err)
	require.ErrorContains(t, checkSlots(plain.Keys(), wakebelltype.QueueKeys{Name: "q"}), "set HashTag")
	require.NoError(t, checkSlots(plain.Keys(), wakebelltype.QueueKeys{Name: "{q}"}))
	require.NoError(t, checkSlots(tagged.Keys(), wakebelltype.QueueKeys{Name: "q"}))
	require.ErrorContains(t, checkSlots(tagged.Keys(), wakebelltype.QueueKeys{Name: "}q"}), "rename the queue")
	require.ErrorContains(t, checkSlots(tagged.Keys(), wakebelltype.QueueKeys{Name: "q", DeadLetters: "dlq"}), "key of dead letters")
	require.ErrorIs(t, checkSlots(plain.Keys(), wakebelltype.QueueKeys{Name: "q"}), wakebelltype.ErrUnsupported)
}

// TestQueueChecksTypesFirst checks that a script checks all types before it writes,
// because Redis does not roll it back.
func TestQueueChecksTypesFirst(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.put(t, "a")
		k := f.keys
		for _, key := range []string{k.processing, k.deadlines, k.tokens, k.counter, k.counts, k.dlq, k.completed, k.failed, k.records} {
			kind := redis.Z{Member: "x"}
			if key == k.deadlines {
				require.NoError(t, f.rdb.LPush(t.Context(), key, "x").Err())
			} else {
				require.NoError(t, f.rdb.ZAdd(t.Context(), key, kind).Err())
			}
			_, err := f.src.Exchange(t.Context(), f.Request(1, time.Minute))
			require.ErrorIs(t, err, wakebelltype.ErrWrongType, key)
			require.ErrorContains(t, err, key)
			require.Len(t, f.list(t, k.pending), 1)
			require.NoError(t, f.rdb.Del(t.Context(), key).Err())
		}
		require.Len(t, f.Claim(t, 1).Leases, 1)
	})
}
