package queue

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
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
		require.Equal(t, []string{"1", "3"}, payloads(f.Claim(t, 9).Leases))
		require.InDelta(t, time.Hour, f.rdb.PTTL(t.Context(), f.keys.deduplication+"k").Val(), float64(time.Minute))
		require.Equal(t, out[0].ID, f.rdb.Get(t.Context(), f.keys.deduplication+"k").Val())
	})
}

// TestPublishIsAnsweredAgain checks that a retry of a call returns the answer of the
// call, even if its messages have been handled since.
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
				leases := h.Claim(t, 9).Leases
				require.Len(t, leases, 2, name)
				h.Settle(t, storetest.Verdict(exchange.Fail, leases[0]), storetest.Verdict(exchange.Fail, leases[1]))
				require.Equal(t, first, f.publish(t, o, m...), name)
				require.Empty(t, h.Claim(t, 9).Leases, name)
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
		require.ErrorIs(t, err, wakebelltype.ErrQueueFull)
		require.Zero(t, f.rdb.Exists(t.Context(), f.keys.deduplication+"b").Val(), "nothing was written")
		f.publish(t, o, NewMessage([]byte("b"), "b"), NewMessage([]byte("dup"), "a"))
		_, _, err = f.Publish(t.Context(), o, NewMessage([]byte("c"), ""))
		require.ErrorIs(t, err, wakebelltype.ErrQueueFull)
		require.False(t, f.publish(t, o, NewMessage([]byte("dup"), "a"))[0].Fresh, "a duplicate is accepted by a full queue")
	})
}

func TestPublishDropsOldestAndFreesItsKey(t *testing.T) {
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
		require.Equal(t, []string{"c", "a again"}, payloads(f.Claim(t, 9).Leases))
	})
}

// TestKeyIsFreedByItsOwnMessageOnly checks that a permanently failed message
// releases its key, but not the key of a newer publish.
func TestKeyIsFreedByItsOwnMessageOnly(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		o := PublishOptions{OwnKeys: true}
		key := f.keys.deduplication + "k"
		h := f.holder(SourceOptions{FreeKeys: true, MaxDeliveries: 1})
		for _, v := range []exchange.Verdict{exchange.DeadLetter, exchange.Fail} {
			require.True(t, f.publish(t, o, NewMessage([]byte("x"), "k"))[0].Fresh)
			h.Settle(t, storetest.Verdict(v, h.Claim(t, 1).Leases[0]))
			require.Zero(t, f.rdb.Exists(t.Context(), key).Val())
		}
		require.True(t, f.publish(t, o, NewMessage([]byte("x"), "k"))[0].Fresh)
		h.lapse(t, 1)
		require.Len(t, h.Claim(t, 1).DeadLettered, 1)
		require.Zero(t, f.rdb.Exists(t.Context(), key).Val())

		require.True(t, f.publish(t, o, NewMessage([]byte("old"), "k"))[0].Fresh)
		old := h.Claim(t, 1).Leases[0]
		require.NoError(t, f.rdb.Del(t.Context(), key).Err(), "its window has ended")
		fresh := f.publish(t, o, NewMessage([]byte("new"), "k"))[0]
		h.Settle(t, storetest.Verdict(exchange.Fail, old))
		require.Equal(t, fresh.ID, f.rdb.Get(t.Context(), key).Val())

		plain := f.holder(SourceOptions{})
		plain.Settle(t, storetest.Verdict(exchange.Fail, plain.Claim(t, 1).Leases[0]))
		require.Equal(t, fresh.ID, f.rdb.Get(t.Context(), key).Val(), "only with FreeKeys")
	})
}

// A message that was published beside others before is published, not answered from their call.
func TestPublishKnowsStepsByAllTheirMessages(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t))
	one, two, keyed := NewMessage([]byte("1"), ""), NewMessage([]byte("2"), ""), NewMessage([]byte("3"), "k")
	stored := int64(0)
	publish := func(n int64, messages ...Message) []wakebelltype.QueuePublished {
		t.Helper()
		published := f.publish(t, PublishOptions{}, messages...)
		stored += n
		require.Equal(t, stored, f.rdb.LLen(t.Context(), f.keys.pending).Val())
		return published
	}
	both := publish(2, one, two)
	require.Equal(t, both, publish(0, one, two), "a retry")
	other := publish(2, one, keyed)
	require.Len(t, other, 2)
	require.Equal(t, other[1], publish(0, keyed)[0], "the key says that it was published")
	alone := publish(1, two)
	require.Equal(t, alone, publish(0, two), "a retry")
}

// TestPublishBoundsWhatIsStored checks that a step carries a bounded number of bytes, also of
// payloads that are longer as they are stored.
func TestPublishBoundsWhatIsStored(t *testing.T) {
	t.Parallel()
	for name, payload := range map[string][]byte{"control characters": make([]byte, 10<<10), "not UTF-8": bytes.Repeat([]byte{0xff, 0}, 15<<10)} {
		f := queueOn(t, redistest.Shared(t), redistest.Name(t)+name)
		messages := make([]Message, 100) // about 6 MiB
		for i := range messages {
			messages[i] = NewMessage(payload, "")
		}
		require.Len(t, f.publish(t, PublishOptions{}, messages...), 100)
		steps, err := f.rdb.Keys(t.Context(), f.keys.published+"*").Result() // each stores its answer
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(steps), 6, name)
	}
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
	require.Zero(t, f.Claim(t, 1).Next)
	f.put(t, "c") // the hint of a is still outstanding
	f.Claim(t, 9)
	f.put(t, "d")
	message, err = sub.ReceiveMessage(t.Context())
	require.NoError(t, err)
	require.Regexp(t, `^due 0 \d`, message.Payload)
	_, err = sub.ReceiveTimeout(t.Context(), 50*time.Millisecond)
	require.Error(t, err, "two hints in all")
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

// TestDroppingOldestIsBounded checks that a queue without an earlier cap shrinks
// by a bounded number of messages with each publish.
func TestDroppingOldestIsBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t))
	f.seed(t, "pending", 10_000)
	o := PublishOptions{Cap: 9000, DropOldest: true}
	total := 0
	for i := 1; ; i++ {
		_, dropped, err := f.Publish(t.Context(), o, NewMessage([]byte("x"), ""))
		require.NoError(t, err)
		total += dropped
		require.LessOrEqual(t, dropped, 251)
		if f.rdb.LLen(t.Context(), f.keys.pending).Val() == 9000 {
			require.Equal(t, 1000+i, total)
			break
		}
		require.Less(t, i, 7)
	}
}

// scriptCalls is a client hook that counts calls of scripts.
type scriptCalls struct{ atomic.Int64 }

func (*scriptCalls) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*scriptCalls) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (s *scriptCalls) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			s.Add(1)
		}
		return next(ctx, cmd)
	}
}

// TestCallThatDropsOldestPublishesInParts checks that a script call that deletes messages
// publishes few.
func TestCallThatDropsOldestPublishesInParts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		options  PublishOptions
		messages int
		calls    int64
	}{
		{PublishOptions{Cap: 1000}, layout.BatchEntries, 1},
		{PublishOptions{Cap: 1000, DropOldest: true}, layout.DroppingEntries, 1},
		{PublishOptions{Cap: 1000, DropOldest: true}, layout.DroppingEntries + 1, 2},
	} {
		f := newFixture(t, redistest.Shared(t))
		var calls scriptCalls
		f.rdb.AddHook(&calls)
		all := make([]Message, test.messages)
		for i := range all {
			all[i] = NewMessage([]byte("x"), "")
		}
		_, _, err := f.Publish(t.Context(), test.options, all...)
		require.NoError(t, err)
		require.Equal(t, test.calls, calls.Load())
		require.EqualValues(t, test.messages, f.rdb.LLen(t.Context(), f.keys.pending).Val())
	}
}

// TestKeysOfDroppedMessagesWithoutOwner checks that the key of a dropped message is
// released if its publisher stored the key; otherwise the key lasts for its window.
func TestKeysOfDroppedMessagesWithoutOwner(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.publish(t, PublishOptions{}, NewMessage([]byte("a"), "a"))
		drop := PublishOptions{Cap: 1, DropOldest: true}
		f.publish(t, drop, NewMessage([]byte("b"), "b"))
		f.publish(t, drop, NewMessage([]byte("c"), "c"))
		require.False(t, f.publish(t, PublishOptions{}, NewMessage([]byte("a"), "a"))[0].Fresh)
		require.Positive(t, f.rdb.PTTL(t.Context(), f.keys.deduplication+"a").Val(), "the key expires")
		require.True(t, f.publish(t, PublishOptions{}, NewMessage([]byte("b"), "b"))[0].Fresh)
	})
}

// TestKeysOfDeletedMessagesAreFree deletes messages, held messages and dead letters, and
// publishes their keys again. The keys of handled messages suppress as before.
func TestKeysOfDeletedMessagesAreFree(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		o := PublishOptions{Window: time.Hour}
		fresh := func(keys ...string) (out []bool) {
			for _, key := range keys {
				out = append(out, f.publish(t, o, NewMessage([]byte(key), key))[0].Fresh)
			}
			return out
		}
		f.publish(t, o, NewMessage([]byte("handled"), "handled"), NewMessage([]byte("dead"), "dead"), NewMessage([]byte("kept"), "kept"), NewMessage([]byte("held"), "held"))
		leases := f.Claim(t, 4).Leases
		f.Settle(t, storetest.Verdict(exchange.Ack, leases[0]), storetest.Verdict(exchange.DeadLetter, leases[1]), storetest.Verdict(exchange.DeadLetter, leases[2]))
		waiting := NewMessage([]byte("waiting"), "waiting")
		f.publish(t, o, waiting, NewMessage([]byte("own"), "own"))
		require.Equal(t, []bool{false, false, false, false, false}, fresh("handled", "dead", "kept", "held", "waiting"))

		dead, _, err := f.DeadLetters(t.Context(), "", "", 0)
		require.NoError(t, err)
		require.Len(t, dead, 2)
		n, err := f.DiscardLetters(t.Context(), dead[0])
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, []bool{true, false}, fresh("dead", "kept"))
		deleted, err := f.Purge(t.Context(), true)
		require.NoError(t, err)
		require.EqualValues(t, 4, deleted)
		require.True(t, f.publish(t, o, waiting)[0].Fresh, "a retry of the publish that stored it")
		require.Zero(t, f.rdb.LLen(t.Context(), f.keys.pending).Val(), "it was deleted since")
		f.publish(t, o, NewMessage([]byte("a"), ""))
		_, _, err = f.Publish(t.Context(), PublishOptions{Cap: 1}, NewMessage([]byte("b"), "held"))
		require.ErrorIs(t, err, wakebelltype.ErrQueueFull)
		outcome, _, err := f.RedriveLetter(t.Context(), dead[1], "waiting", o)
		require.NoError(t, err)
		require.Equal(t, wakebelltype.QueueRedriveSucceeded, outcome, "the key of another message, which was deleted")
		require.Equal(t, []bool{true, true, false, false}, fresh("held", "own", "handled", "waiting"))
		require.Equal(t, []bool{false, false}, fresh("held", "own"))

		_, err = f.Purge(t.Context(), true)
		require.NoError(t, err)
		require.NoError(t, f.rdb.Set(t.Context(), f.Name()+"s::deduplication::handled", "", 0).Err())
		r, err := f.Unregister(t.Context())
		require.NoError(t, err)
		require.Equal(t, wakebelltype.QueueRemoval{Existed: true}, r)
		require.Equal(t, []bool{true, true, true}, fresh("handled", "dead", "kept"), "nothing is left of the queue")
		require.EqualValues(t, 1, f.rdb.Exists(t.Context(), f.Name()+"s::deduplication::handled").Val(), "of another queue")
	})
}

// A Redis that is full refuses messages, also those whose deduplication keys can be freed.
func TestFullRedisRefusesMessages(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Start(t, "--maxmemory-policy", "noeviction").Client(t))
	f.put(t, "first")
	require.NoError(t, f.rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	for name, o := range map[string]PublishOptions{
		"plain": {}, "own keys": {OwnKeys: true}, "drops oldest": {Cap: 1, DropOldest: true},
	} {
		for _, key := range []string{"", "k"} {
			_, _, err := f.Publish(t.Context(), o, NewMessage([]byte("x"), key))
			require.ErrorIs(t, err, wakebelltype.ErrMemoryFull, name)
		}
	}
	require.NoError(t, f.rdb.ConfigSet(t.Context(), "maxmemory", "0").Err())
	require.Equal(t, []string{"first"}, payloads(f.Claim(t, 9).Leases))
}
