package timers

import (
	"context"
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

// A script that Redis no longer has leaves no partial change.
func TestLargeBatchWithoutScript(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Start(t).Client(t))
	f.schedule(t, many(50, "first ")...)
	require.NoError(t, f.rdb.ScriptFlush(t.Context()).Err())
	second := many(100, "second ")
	for i, got := range f.schedule(t, second...) {
		require.Equal(t, i < 50, got.Outcome == wakebelltype.OutcomeReplaced)
	}
	f.has(t, second)
}

// TestLargeBatchOfBrokenTopic checks that a key that has changed its type is an error, and
// that nothing is written.
func TestLargeBatchOfBrokenTopic(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.schedule(t, many(50, "first ")...)
		require.NoError(t, f.rdb.Del(t.Context(), f.key.Timeline, f.key.Payloads).Err())
		require.NoError(t, f.rdb.Set(t.Context(), f.key.Timeline, "x", 0).Err())
		_, err := f.Schedule(t.Context(), f.topic, many(50, "second ")...)
		require.ErrorIs(t, err, wakebelltype.ErrWrongType)
		require.ErrorContains(t, err, f.key.Timeline)
		require.Zero(t, f.rdb.Exists(t.Context(), f.key.Payloads).Val())
	})
}

func TestLargeBatchInFullRedis(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Start(t, "--maxmemory-policy", "noeviction").Client(t))
	first := many(50, "first ")
	f.schedule(t, first...)
	require.NoError(t, f.rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	_, err := f.Schedule(t.Context(), f.topic, many(100, "second ")...)
	require.ErrorIs(t, err, wakebelltype.ErrMemoryFull)
	require.EqualValues(t, 50, f.rdb.HLen(t.Context(), f.key.Payloads).Val())
	f.has(t, first)
}

// TestLargeBatchIsOneScript checks that a batch needs no right but those
// of the script.
func TestLargeBatchIsOneScript(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	require.NoError(t, server.Client(t).Do(t.Context(), "ACL", "SETUSER", "plain", "on", ">secret", "+@all", "-multi", "~*", "&*").Err())
	f := newFixture(t, server.Client(t, func(o *redis.Options) { o.Username, o.Password = "plain", "secret" }))
	n := f.counted()
	for i := range 3 {
		entries := many((i+1)*50, fmt.Sprint(i, " "))
		f.schedule(t, entries...)
		f.has(t, entries)
	}
	require.Zero(t, n.Load())
}
