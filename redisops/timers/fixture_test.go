package timers

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

func (f *fixture) stats(t testing.TB) wakebelltype.Stats {
	t.Helper()
	st, err := f.Stats(t.Context(), f.topic)
	require.NoError(t, err)
	return st
}

// scheduleMany schedules timers that are due, in the order of their numbers.
func (f *fixture) scheduleMany(t testing.TB, name string, n int, key func(i int) string) {
	t.Helper()
	base := time.Now().Add(-time.Hour)
	entries := make([]Entry, n)
	for i := range entries {
		entries[i] = Entry{ID: fmt.Sprintf("%s-%06d", name, i), Key: key(i), Payload: []byte("body"), At: base.Add(time.Duration(i) * time.Microsecond)}
	}
	f.schedule(t, entries...)
}

// plant writes timers as Python does, quickly.
func (f *fixture) plant(t *testing.T, score float64, names ...string) {
	t.Helper()
	for part := range slices.Chunk(names, 1000) {
		zs := make([]redis.Z, len(part))
		fields := make([]any, 0, 2*len(part))
		for i, id := range part {
			zs[i] = z(score, id)
			fields = append(fields, id, "p-"+id)
		}
		require.NoError(t, f.rdb.ZAdd(t.Context(), f.key.Timeline, zs...).Err())
		require.NoError(t, f.rdb.HSet(t.Context(), f.key.Payloads, fields...).Err())
	}
}

// keyRated settles, and claims up to want timers under flow control, for a long time.
func (f *fixture) keyRated(t testing.TB, want int, flow exchange.Flow, settle ...exchange.Settlement) *exchange.Reply {
	t.Helper()
	r := f.Request(want, 1000*time.Hour)
	r.Flow, r.Settle = flow, settle
	return f.Run(t, r)
}

func acks(leases []exchange.Lease) (all []exchange.Settlement) {
	for _, l := range leases {
		all = append(all, ack(l))
	}
	return all
}

func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%05d", i)
	}
	return names
}

// claimFor claims up to want timers for so long.
func (f *fixture) claimFor(t testing.TB, ttl time.Duration, want int, flow exchange.Flow) *exchange.Reply {
	t.Helper()
	r := f.Request(want, ttl)
	r.Flow = flow
	return f.Run(t, r)
}
