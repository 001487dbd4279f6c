package timers

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// between is a hook that runs once before a transaction, and counts transactions and
// scripts.
type between struct {
	run                   func()
	transactions, scripts atomic.Int64
}

func (b *between) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (b *between) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.HasPrefix(cmd.Name(), "eval") {
			b.scripts.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (b *between) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "multi" && b.transactions.Add(1) == 1 && b.run != nil {
			b.run()
		}
		return next(ctx, cmds)
	}
}

// large returns n due entries, whose payloads together are left out of an answer.
func large(n int) []Entry {
	entries := many(n, strings.Repeat("x", fetchFrom/n))
	for i := range entries {
		entries[i].At, entries[i].In = time.Unix(int64(i+1), 0), 0
	}
	return entries
}

func requirePayloads(t *testing.T, entries []Entry, leases []exchange.Lease) {
	t.Helper()
	require.Len(t, leases, len(entries))
	for i, l := range leases {
		require.Equal(t, entries[i].ID, l.ID)
		require.Equal(t, string(entries[i].Payload), string(l.Payload))
	}
}

// TestFetch checks that the payloads of a large claim are fetched in one transaction,
// also beside extensions, granted and refused, and when the answer is repeated.
func TestFetch(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		entries := large(20)
		f.schedule(t, entries...)
		b := &between{}
		f.rdb.AddHook(b)
		few := f.Claim(t, 3).Leases
		requirePayloads(t, entries[:3], few)
		require.Zero(t, b.transactions.Load(), "a small claim is answered at once")

		f.schedule(t, large(20)[:3]...)
		few = f.Claim(t, 3).Leases
		require.NoError(t, f.rdb.ZRem(t.Context(), f.key.Timeline, few[2].ID).Err())
		f.schedule(t, large(40)[20:]...)
		request := f.Request(100, time.Minute)
		request.Settle = []exchange.Settlement{storetest.Verdict(exchange.Ack, few[0])}
		request.Extend = []exchange.Held{storetest.Held(few[1]), storetest.Held(few[2])}
		b.scripts.Store(0)
		for i := range 2 { // the second is the stored answer
			reply := f.Run(t, request)
			require.Len(t, reply.Leases, 37)
			requirePayloads(t, entries[3:], reply.Leases[:17])
			require.Len(t, reply.Refused, 1)
			require.EqualValues(t, i+1, b.transactions.Load())
			require.EqualValues(t, i+1, b.scripts.Load(), "no lease needs a second look")
		}
	})
}

// TestFetchOfTimersThatChange checks that a timer that changes between the exchange and
// the transaction is not delivered with a payload that the exchange has not seen.
func TestFetchOfTimersThatChange(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.MaxPayload = 8000
		for name, change := range map[string]func(*fixture) error{
			"cancelled": func(f *fixture) error {
				_, err := f.Cancel(t.Context(), f.topic, "3")
				return err
			},
			"scheduled again": func(f *fixture) error {
				_, err := f.Schedule(t.Context(), f.topic, Entry{ID: "3", Payload: []byte("of tomorrow"), In: 24 * time.Hour})
				return err
			},
			"no payload": func(f *fixture) error { return f.rdb.HDel(t.Context(), f.key.Payloads, "3").Err() },
			"large payload": func(f *fixture) error {
				return f.rdb.HSet(t.Context(), f.key.Payloads, "3", strings.Repeat("y", 8001)).Err()
			},
		} {
			f := f.on(f.topic + name)
			entries := large(20)
			f.schedule(t, entries...)
			other := *f // without the hook
			b := &between{run: func() { require.NoError(t, change(&other), name) }}
			f.rdb.AddHook(b)
			reply := f.Claim(t, 100)
			requirePayloads(t, append(entries[:3:3], entries[4:]...), reply.Leases)
			require.Positive(t, b.transactions.Load(), name)
		}
	})
}

// TestFetchBesideDeadLetters checks the dead letters of a claim whose payloads are
// fetched.
func TestFetchBesideDeadLetters(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.MaxPayload = 8000
		f = f.holder(SourceOptions{MaxClaims: 1})
		entries := large(20)
		f.schedule(t, entries[0])
		require.Len(t, f.Run(t, f.Request(1, time.Millisecond)).Leases, 1)
		require.Eventually(t, func() bool { return !f.get(t, entries[0].ID).Running }, 30*time.Second, time.Millisecond)
		f.schedule(t, entries[1:]...)
		f.foreign(t, "large", 8001)
		b := &between{}
		f.rdb.AddHook(b)
		reply := f.Claim(t, 100)
		requirePayloads(t, entries[1:], reply.Leases)
		require.EqualValues(t, 1, b.transactions.Load())
		require.Len(t, reply.DeadLettered, 2)
		for _, d := range reply.DeadLettered {
			if d.ID == "large" {
				require.Equal(t, "the payload has 8001 bytes, more than 8000", d.Reason)
			} else {
				require.Equal(t, neverSettled, d.Reason)
				require.Equal(t, string(entries[0].Payload), string(d.Payload))
			}
		}
	})
}

func TestFetchOfEmptyPayloads(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.schedule(t, large(20)...)
		require.NoError(t, f.rdb.HSet(t.Context(), f.key.Payloads, "1", "").Err())
		b := &between{}
		f.rdb.AddHook(b)
		reply := f.Claim(t, 100)
		require.Len(t, reply.Leases, 20)
		require.Empty(t, reply.Leases[1].Payload)
		require.Zero(t, b.transactions.Load())
	})
}

func TestNoFetch(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	require.NoError(t, server.Client(t).Do(t.Context(), "ACL", "SETUSER", "plain", "on", ">secret", "+@all", "-multi", "~*", "&*").Err())
	plain := func(o *redis.Options) { o.Username, o.Password = "plain", "secret" }
	for name, f := range map[string]*fixture{
		"switched off": newFixture(t, server.Client(t)), "no transactions": newFixture(t, server.Client(t, plain)),
	} {
		f.NoPayloadsApart = name == "switched off"
		entries := large(20)
		b := &between{}
		f.rdb.AddHook(b)
		for range 3 {
			f.schedule(t, entries...)
			requirePayloads(t, entries, f.Claim(t, 100).Leases)
		}
		if f.NoPayloadsApart {
			require.Zero(t, b.transactions.Load())
		} else {
			require.EqualValues(t, 1, b.transactions.Load(), "it is not tried again")
		}
	}
}

func TestFetchInCluster(t *testing.T) {
	t.Parallel()
	rdb := redistest.Cluster(t).Client(t)
	s, err := New(rdb, wakebelltype.Keys{HashTag: true})
	require.NoError(t, err)
	b := &between{}
	rdb.AddHook(b)
	entries := large(20)
	_, err = s.Schedule(t.Context(), "topic", entries...)
	require.NoError(t, err)
	requirePayloads(t, entries, storetest.NewStream(s.Source("topic", SourceOptions{})).Claim(t, 100).Leases)
	require.Positive(t, b.transactions.Load())
	require.False(t, s.transactionless.Load(), "it was not refused")
}
