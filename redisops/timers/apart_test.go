package timers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// transactions counts the transactions that a client begins.
type transactions struct{ atomic.Int64 }

func (n *transactions) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (n *transactions) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (n *transactions) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "multi" {
			n.Add(1)
		}
		return next(ctx, cmds)
	}
}

// counted counts the transactions of a fixture.
func (f *fixture) counted() *transactions {
	n := &transactions{}
	f.rdb.AddHook(n)
	return n
}

// many returns n entries with a payload that identifies them.
func many(n int, payload string) []Entry {
	entries := make([]Entry, n)
	for i := range entries {
		entries[i] = Entry{ID: fmt.Sprint(i), Payload: fmt.Append(nil, payload, i), In: time.Hour}
	}
	return entries
}

func (f *fixture) has(t *testing.T, entries []Entry) {
	t.Helper()
	for _, e := range entries {
		require.Equal(t, string(e.Payload), string(f.get(t, e.ID).Payload))
	}
}

func TestPayloadsApart(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		n := f.counted()
		first := many(apartFrom, "first ")
		for _, got := range f.schedule(t, first...) {
			require.Equal(t, wakebelltype.OutcomeCreated, got.Outcome)
		}
		require.Zero(t, n.Load(), "the types of the keys are not known yet")
		second := many(3*apartFrom, "second ")
		for i, got := range f.schedule(t, second...) {
			require.Equal(t, i < apartFrom, got.Outcome == wakebelltype.OutcomeReplaced)
			require.Equal(t, i >= apartFrom, got.Outcome == wakebelltype.OutcomeCreated)
		}
		require.EqualValues(t, 1, n.Load())
		f.has(t, second)
		fresh := many(apartFrom, "third ")
		for i := range fresh {
			fresh[i].ID += " fresh"
			fresh[i].At, fresh[i].In = time.Now().Add(time.Duration(i)*time.Minute), 0
		}
		f.schedule(t, fresh...)
		f.has(t, fresh)
		require.EqualValues(t, 2, n.Load())

		f.schedule(t, many(apartFrom-1, "few ")...)
		kept := many(apartFrom, "kept ")
		kept[3].Policy = wakebelltype.PolicyKeep
		require.Equal(t, wakebelltype.OutcomeKeptPending, f.schedule(t, kept...)[3].Outcome)
		require.EqualValues(t, 2, n.Load(), "entries that may be kept are not sent apart")
	})
}

func TestNoPayloadsApart(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t))
	f.NoPayloadsApart = true
	n := f.counted()
	for _, payload := range []string{"first ", "second "} {
		entries := many(2*apartFrom, payload)
		f.schedule(t, entries...)
		f.has(t, entries)
	}
	require.Zero(t, n.Load())
}

// A script that Redis no longer has leaves no partial change.
func TestPayloadsApartWithoutScript(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Start(t).Client(t))
	f.schedule(t, many(apartFrom, "first ")...)
	require.NoError(t, f.rdb.ScriptFlush(t.Context()).Err())
	second := many(2*apartFrom, "second ")
	for i, got := range f.schedule(t, second...) {
		require.Equal(t, i < apartFrom, got.Outcome == wakebelltype.OutcomeReplaced)
	}
	f.has(t, second)
}

// crash is a hook that simulates the end of a client after its first pipeline: it
// sends nothing afterwards.
type crash struct{ crashed atomic.Bool }

var errCrashed = errors.New("the client has crashed")

func (c *crash) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *crash) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if c.crashed.Load() {
			return errCrashed
		}
		return next(ctx, cmd)
	}
}

func (c *crash) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		defer c.crashed.Store(true)
		return next(ctx, cmds)
	}
}

// TestPayloadsApartOfClientThatCrashes checks that a batch whose script did not
// run changes nothing, even if its client ends before it can retry: an existing
// timer must not have the new body at its old instant.
func TestPayloadsApartOfClientThatCrashes(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for name, trouble := range map[string]func(*fixture) error{
		"the script is unknown": func(f *fixture) error { return f.rdb.ScriptFlush(t.Context()).Err() },
		"leases of another type": func(f *fixture) error {
			return f.rdb.Set(t.Context(), f.key.Leases, "x", 0).Err()
		},
		"no payloads, and the script is unknown": func(f *fixture) error {
			if err := f.rdb.Del(t.Context(), f.key.Payloads).Err(); err != nil {
				return err
			}
			return f.rdb.ScriptFlush(t.Context()).Err()
		},
	} {
		f := newFixture(t, server.Client(t))
		first := many(apartFrom, "first ")
		f.schedule(t, first...)
		require.NoError(t, trouble(f), name)
		before := f.rdb.HGetAll(t.Context(), f.key.Payloads).Val()
		scores := f.rdb.ZRangeWithScores(t.Context(), f.key.Timeline, 0, -1).Val()
		c := &crash{}
		f.rdb.AddHook(c)
		_, err := f.Schedule(t.Context(), f.topic, many(2*apartFrom, "second ")...)
		require.ErrorIs(t, err, errCrashed, name)
		c.crashed.Store(false)
		require.Equal(t, before, f.rdb.HGetAll(t.Context(), f.key.Payloads).Val(), name)
		require.Equal(t, scores, f.rdb.ZRangeWithScores(t.Context(), f.key.Timeline, 0, -1).Val(), name)
		require.Zero(t, f.rdb.Exists(t.Context(), f.key.apart()).Val(), name)
	}
}

// TestPayloadsApartOfBrokenTopic checks that a key that has changed its type is an
// error.
func TestPayloadsApartOfBrokenTopic(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.schedule(t, many(apartFrom, "first ")...)
		require.NoError(t, f.rdb.Del(t.Context(), f.key.Timeline, f.key.Payloads).Err())
		require.NoError(t, f.rdb.Set(t.Context(), f.key.Timeline, "x", 0).Err())
		n := f.counted()
		for range 2 {
			_, err := f.Schedule(t.Context(), f.topic, many(apartFrom, "second ")...)
			require.ErrorIs(t, err, wakebelltype.ErrWrongType)
			require.ErrorContains(t, err, f.key.Timeline)
		}
		require.EqualValues(t, 1, n.Load(), "payloads of a broken topic are not sent apart")
		require.NoError(t, f.rdb.Del(t.Context(), f.key.Timeline).Err())
		_, err := f.src.RemoveOrphans(t.Context())
		require.NoError(t, err)
		require.Zero(t, f.rdb.HLen(t.Context(), f.key.Payloads).Val())
	})
}

func TestPayloadsApartInFullRedis(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Start(t, "--maxmemory-policy", "noeviction").Client(t))
	first := many(apartFrom, "first ")
	f.schedule(t, first...)
	require.NoError(t, f.rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	_, err := f.Schedule(t.Context(), f.topic, many(2*apartFrom, "second ")...)
	require.ErrorIs(t, err, wakebelltype.ErrMemoryFull)
	require.EqualValues(t, apartFrom, f.rdb.HLen(t.Context(), f.key.Payloads).Val())
	f.has(t, first)
}

// TestPayloadsApartWithoutTransactions checks that a user without the right to
// transactions can schedule, and that transactions are not tried again.
func TestPayloadsApartWithoutTransactions(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	require.NoError(t, server.Client(t).Do(t.Context(), "ACL", "SETUSER", "plain", "on", ">secret", "+@all", "-multi", "~*", "&*").Err())
	f := newFixture(t, server.Client(t, func(o *redis.Options) { o.Username, o.Password = "plain", "secret" }))
	n := f.counted()
	for i := range 3 {
		entries := many((i+1)*apartFrom, fmt.Sprint(i, " "))
		f.schedule(t, entries...)
		f.has(t, entries)
	}
	require.EqualValues(t, 1, n.Load())
}

func TestPayloadsApartInCluster(t *testing.T) {
	t.Parallel()
	rdb := redistest.Cluster(t).Client(t)
	s, err := New(rdb, wakebelltype.Keys{HashTag: true})
	require.NoError(t, err)
	n := &transactions{}
	rdb.AddHook(n)
	for i := range 2 {
		entries := many((i+1)*apartFrom, fmt.Sprint(i, " "))
		_, err := s.Schedule(t.Context(), "topic", entries...)
		require.NoError(t, err)
		for _, e := range entries {
			got, err := s.Get(t.Context(), "topic", e.ID)
			require.NoError(t, err)
			require.Equal(t, string(e.Payload), string(got.Payload))
		}
	}
	require.True(t, s.topics.sound("topic"), "it was not refused")
	require.Positive(t, n.Load())
}
