package queue

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

func (f *fixture) publish(t testing.TB, o PublishOptions, m ...Message) []wakebelltype.QueuePublished {
	t.Helper()
	out, _, err := f.Publish(t.Context(), o, m...)
	require.NoError(t, err)
	return out
}

func TestPublishSuppressesDuplicates(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		window := PublishOptions{Window: time.Hour}
		out := f.publish(t, window, NewMessage([]byte("1"), "k"), NewMessage([]byte("2"), "k"), NewMessage([]byte("3"), "other"))
		require.True(t, out[0].Fresh)
		require.Equal(t, wakebelltype.QueuePublished{ID: out[0].ID}, out[1], "of one call, too")
		require.True(t, out[2].Fresh)
		require.Equal(t, wakebelltype.QueuePublished{ID: out[0].ID}, f.publish(t, window, NewMessage([]byte("4"), "k"))[0])
		require.Equal(t, []string{"1", "3"}, payloads(f.claim(t, 9).Leases))
		require.InDelta(t, time.Hour, f.rdb.PTTL(t.Context(), f.keys.deduplication+"k").Val(), float64(time.Minute))
		require.Equal(t, out[0].ID, f.rdb.Get(t.Context(), f.keys.deduplication+"k").Val())
	})
}

// A retry of a call gets the answer of the call, whatever has happened to its
// messages since.
func TestPublishIsAnsweredAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		for name, o := range map[string]PublishOptions{
			"hour": {}, "short window": {Window: 20 * time.Second}, "own keys": {OwnKeys: true},
		} {
			for _, key := range []string{"", "k" + name} {
				m := []Message{NewMessage([]byte("a"), key), NewMessage([]byte("b"), key+key)}
				first := f.publish(t, o, m...)
				require.Equal(t, first, f.publish(t, o, m...), name)
				h := f.holder(SourceOptions{FreeKeys: true})
				leases := h.claim(t, 9).Leases
				require.Len(t, leases, 2, name)
				h.settle(t, storetest.Verdict(exchange.Fail, leases[0]), storetest.Verdict(exchange.Fail, leases[1]))
				require.Equal(t, first, f.publish(t, o, m...), name)
				require.Empty(t, h.claim(t, 9).Leases, name)
			}
		}
	})
}

func TestPublishAtTheCap(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		o := PublishOptions{Cap: 2}
		f.publish(t, o, NewMessage([]byte("a"), "a"))
		_, _, err := f.Publish(t.Context(), o, NewMessage([]byte("b"), "b"), NewMessage([]byte("c"), "c"))
		require.ErrorIs(t, err, redisops.ErrQueueFull)
		require.Zero(t, f.rdb.Exists(t.Context(), f.keys.deduplication+"b").Val(), "nothing was written")
		f.publish(t, o, NewMessage([]byte("b"), "b"), NewMessage([]byte("dup"), "a"))
		_, _, err = f.Publish(t.Context(), o, NewMessage([]byte("c"), ""))
		require.ErrorIs(t, err, redisops.ErrQueueFull)
		require.False(t, f.publish(t, o, NewMessage([]byte("dup"), "a"))[0].Fresh, "a duplicate needs no room")
	})
}

func TestPublishDropsTheOldestAndFreesItsKey(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		o := PublishOptions{Cap: 2, DropOldest: true}
		out, dropped, err := f.Publish(t.Context(), o, NewMessage([]byte("a"), "a"), NewMessage([]byte("b"), "b"),
			NewMessage([]byte("c"), "c"))
		require.NoError(t, err)
		require.Len(t, out, 3)
		require.Equal(t, 1, dropped)
		require.Zero(t, f.rdb.Exists(t.Context(), f.keys.deduplication+"a").Val())
		require.True(t, f.publish(t, o, NewMessage([]byte("a again"), "a"))[0].Fresh)
		require.Equal(t, []string{"c", "a again"}, payloads(f.claim(t, 9).Leases))
	})
}

// TestAKeyIsFreedByItsOwnMessageOnly checks that a permanently failed message
// releases its key, but not the key of a newer publish.
func TestAKeyIsFreedByItsOwnMessageOnly(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		o := PublishOptions{OwnKeys: true}
		key := f.keys.deduplication + "k"
		h := f.holder(SourceOptions{FreeKeys: true, MaxDeliveries: 1})
		for _, v := range []exchange.Verdict{exchange.Bury, exchange.Fail} {
			require.True(t, f.publish(t, o, NewMessage([]byte("x"), "k"))[0].Fresh)
			h.settle(t, storetest.Verdict(v, h.claim(t, 1).Leases[0]))
			require.Zero(t, f.rdb.Exists(t.Context(), key).Val())
		}
		require.True(t, f.publish(t, o, NewMessage([]byte("x"), "k"))[0].Fresh)
		h.lapse(t, 1)
		require.Len(t, h.claim(t, 1).Buried, 1)
		require.Zero(t, f.rdb.Exists(t.Context(), key).Val())

		require.True(t, f.publish(t, o, NewMessage([]byte("old"), "k"))[0].Fresh)
		old := h.claim(t, 1).Leases[0]
		require.NoError(t, f.rdb.Del(t.Context(), key).Err(), "its window is over")
		fresh := f.publish(t, o, NewMessage([]byte("new"), "k"))[0]
		h.settle(t, storetest.Verdict(exchange.Fail, old))
		require.Equal(t, fresh.ID, f.rdb.Get(t.Context(), key).Val())

		plain := f.holder(SourceOptions{})
		plain.settle(t, storetest.Verdict(exchange.Fail, plain.claim(t, 1).Leases[0]))
		require.Equal(t, fresh.ID, f.rdb.Get(t.Context(), key).Val(), "only with FreeKeys")
	})
}

func TestPublishWakesOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t))
	sub := f.rdb.Subscribe(t.Context(), f.keys.hint)
	t.Cleanup(func() { _ = sub.Close() })
	_, err := sub.Receive(t.Context())
	require.NoError(t, err)
	f.put(t, "a")
	f.put(t, "b")
	message, err := sub.ReceiveMessage(t.Context())
	require.NoError(t, err)
	require.Regexp(t, `^due 0 \d`, message.Payload)
	require.Zero(t, f.claim(t, 1).Next)
	f.put(t, "c") // the hint of a is still outstanding
	f.claim(t, 9)
	f.put(t, "d")
	message, err = sub.ReceiveMessage(t.Context())
	require.NoError(t, err)
	require.Regexp(t, `^due 0 \d`, message.Payload)
	_, err = sub.ReceiveTimeout(t.Context(), 50*time.Millisecond)
	require.Error(t, err, "no third")
}

func TestLargeBatchesArePublishedInParts(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t))
	m := make([]Message, 1203)
	for i := range m {
		m[i] = NewMessage([]byte(fmt.Sprint(i)), "")
	}
	out := f.publish(t, PublishOptions{}, m...)
	require.Len(t, out, 1203)
	ids := map[string]bool{}
	for _, p := range out {
		ids[p.ID] = p.Fresh
	}
	require.Len(t, ids, 1203)
	require.EqualValues(t, 1203, f.rdb.LLen(t.Context(), f.keys.pending).Val())
	big := NewMessage([]byte(strings.Repeat("x", 2<<20)), "")
	require.Len(t, f.publish(t, PublishOptions{}, big, big), 2)
}

func TestDeadLettersAreListedRedrivenAndDiscarded(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		reject := func(payload, reason string) {
			f.put(t, payload)
			s := storetest.Verdict(exchange.Bury, f.claim(t, 1).Leases[0])
			s.Reason = reason
			require.Empty(t, f.settle(t, s).Refused)
		}
		reject("twin", "first")
		reject("x", "bad")
		reject("twin", "second")
		require.NoError(t, f.rdb.LPush(t.Context(), f.keys.dlq, "Python's").Err())
		letters, next, err := f.DeadLetters(t.Context(), "", "", 3)
		require.NoError(t, err)
		require.Equal(t, "3", next)
		var reasons []string
		for _, l := range letters {
			reasons = append(reasons, string(l.Payload)+" "+l.Reason)
		}
		require.Equal(t, []string{"twin first", "x bad", "twin second"}, reasons)
		onTwo, _, err := f.DeadLetters(t.Context(), "", "2", 3)
		require.NoError(t, err)
		require.Equal(t, letters[2], onTwo[0], "a twin on a page of its own")
		rest, next, err := f.DeadLetters(t.Context(), "", next, 3)
		require.NoError(t, err)
		require.Empty(t, next)
		require.Equal(t, "Python's", string(rest[0].Payload))
		require.Zero(t, rest[0].At)

		outcome, id, err := f.RedriveLetter(t.Context(), letters[0], "k", PublishOptions{})
		require.NoError(t, err)
		require.Equal(t, wakebelltype.QueueRedriveSucceeded, outcome)
		require.Len(t, id, 32)
		require.NotEqual(t, letters[0].ID, id)
		outcome, _, err = f.RedriveLetter(t.Context(), letters[2], "k", PublishOptions{})
		require.NoError(t, err)
		require.Equal(t, wakebelltype.QueueRedriveDuplicate, outcome)
		outcome, _, err = f.RedriveLetter(t.Context(), rest[0], "", PublishOptions{})
		require.NoError(t, err)
		require.Equal(t, wakebelltype.QueueRedriveSucceeded, outcome)
		outcome, _, err = f.RedriveLetter(t.Context(), rest[0], "", PublishOptions{})
		require.NoError(t, err)
		require.Equal(t, wakebelltype.QueueRedriveAbsent, outcome)
		require.Equal(t, []string{"twin", "Python's"}, payloads(f.claim(t, 9).Leases))

		found, err := f.DeadLetter(t.Context(), letters[2].Entry)
		require.NoError(t, err)
		require.Equal(t, "second", found.Reason)
		n, err := f.DiscardLetters(t.Context(), letters...)
		require.NoError(t, err)
		require.Equal(t, 2, n)
		require.Zero(t, f.rdb.Exists(t.Context(), f.keys.dlq, f.keys.records).Val())
		_, err = f.DeadLetter(t.Context(), letters[2].Entry)
		require.ErrorIs(t, err, redisops.ErrNotFound)
	})
}

func TestDeadLettersAreReadToTheEndWithAnyPageSize(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		const all = 40
		var want []string
		for i := range all {
			want = append(want, fmt.Sprint(i))
			require.NoError(t, f.rdb.LPush(t.Context(), f.keys.dlq, want[i]).Err())
		}
		for limit := 1; limit <= all+1; limit++ {
			var got []string
			for next := "0"; next != ""; {
				var page []wakebelltype.QueueDeadLetter
				var err error
				page, next, err = f.DeadLetters(t.Context(), "", next, limit)
				require.NoError(t, err)
				for _, l := range page {
					got = append(got, string(l.Payload))
				}
			}
			require.Equal(t, want, got, "pages of %d", limit)
		}
	})
}

func TestHealRemovesRecordsOfDeadLettersThatPythonRemoved(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.put(t, "a", "b")
		for _, l := range f.claim(t, 2).Leases {
			f.settle(t, storetest.Verdict(exchange.Bury, l))
		}
		require.NoError(t, f.rdb.RPop(t.Context(), f.keys.dlq).Err())
		require.True(t, f.claim(t, 1).Orphans)
		n, err := f.src.Heal(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.False(t, f.claim(t, 1).Orphans)
		letters, _, err := f.DeadLetters(t.Context(), "", "", 0)
		require.NoError(t, err)
		require.NotZero(t, letters[0].At)
	})
}

func TestQueueIsListedMeasuredAndPurged(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.publish(t, PublishOptions{OwnKeys: true}, NewMessage([]byte("a"), "k"), NewMessage([]byte("b"), ""))
		f.put(t, "c")
		require.NoError(t, f.rdb.LPush(t.Context(), f.keys.pending, "\x1eRMQ1:bad").Err())
		lease := f.claim(t, 1).Leases[0]
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
		require.Equal(t, exchange.Lost, f.settle(t, storetest.Verdict(exchange.Ack, lease)).Refused[0].Why)
	})
}

func TestAMessageThatCannotBeReadIsAtFault(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		for i, body := range []string{
			`bad`, `[]`, `{"payload":"x"}`, `{"id":"a"}`, `{"id":"a","payload":"x","payload_hex":"00"}`, `{"id":"a","payload_hex":"0"}`,
			`{"id":"a","payload":1}`,
		} {
			require.NoError(t, f.rdb.LPush(t.Context(), f.keys.pending, "\x1eRMQ1:"+body).Err())
			lease := f.claim(t, 1).Leases[0]
			require.NotEmpty(t, lease.Fault, body)
			s := storetest.Verdict(exchange.Bury, lease)
			s.Reason = lease.Fault
			require.Empty(t, f.settle(t, s).Refused)
			require.EqualValues(t, i+1, f.rdb.LLen(t.Context(), f.keys.dlq).Val())
		}
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
		require.ErrorIs(t, err, redisops.ErrInvalid, "%q", name)
	}
	q, err := New(s, wakebelltype.QueueKeys{Name: "a:b", Separator: "/", DeadLetters: "other"})
	require.NoError(t, err)
	require.Equal(t, "a:b/processing:lease_tokens", q.keys.tokens)
	require.Equal(t, "other", q.keys.dlq)
}

func TestQueueKeysShareASlot(t *testing.T) {
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
	require.ErrorIs(t, checkSlots(plain.Keys(), wakebelltype.QueueKeys{Name: "q"}), redisops.ErrUnsupported)
}

// A script is not rolled back, so it checks all types before it writes.
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
			_, err := f.src.Exchange(t.Context(), f.request(1, time.Minute))
			require.ErrorIs(t, err, redisops.ErrWrongType, key)
			require.ErrorContains(t, err, key)
			require.Len(t, f.list(t, k.pending), 1)
			require.NoError(t, f.rdb.Del(t.Context(), key).Err())
		}
		require.Len(t, f.claim(t, 1).Leases, 1)
	})
}
