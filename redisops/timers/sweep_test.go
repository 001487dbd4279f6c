package timers

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
)

// lostTimeline writes n timers, of which every second one was delivered and failed, and every
// third has a key, and deletes the timeline.
func (f *fixture) lostTimeline(t *testing.T, n int) {
	t.Helper()
	var entries []Entry
	for i := range n {
		e := Entry{ID: fmt.Sprint("lost", i), Payload: []byte("body"), In: time.Hour}
		if i%3 == 0 {
			e.Key = fmt.Sprint("key", i)
		}
		entries = append(entries, e)
	}
	f.schedule(t, entries...)
	for i := 0; i < n; i += 2 {
		f.do(t, "HSET", f.key.Leases, fmt.Sprint("lost", i), "w:1:1:1700000000:1800000000:1700000000:error")
	}
	f.do(t, "DEL", f.key.Timeline)
}

func (f *fixture) sizes(t *testing.T) (n [4]int64) {
	t.Helper()
	for i, key := range []string{f.key.Payloads, f.key.Leases, f.key.TimerKeys} {
		n[i] = f.rdb.HLen(t.Context(), key).Val()
	}
	return n
}

// TestSweepKeepsPayloadsOfLostTimers checks that nothing is removed from which timers can
// be restored, after the timeline was deleted by hand: neither by one node nor by several, and
// also not while clients schedule.
func TestSweepKeepsPayloadsOfLostTimers(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		const n = 400
		f.lostTimeline(t, n)
		f.due(t, numbered(30)...)
		before := f.sizes(t)
		flow := exchange.Flow{PerKey: 1}
		for range 3 {
			g := f.holder(SourceOptions{})
			require.NoError(t, g.src.SweepKeys(t.Context(), flow))
			r := g.Request(0, time.Minute)
			r.Flow = flow
			g.Run(t, r)
			swept, err := g.src.RemoveOrphans(t.Context())
			require.NoError(t, err)
			require.Equal(t, exchange.Swept{Held: n, Of: n + 30, Key: f.key.Payloads}, swept)
			require.Equal(t, before, f.sizes(t))
		}
		require.True(t, func() bool {
			f.do(t, "DEL", f.key.Timeline)
			return f.Claim(t, 1).Orphans
		}(), "an exchange sees them")
	})
}

// TestSweepKeepsPayloadsThoughOthersAreMissing checks that the sizes of keys do not hide that
// timers were lost, if others lost their payloads.
func TestSweepKeepsPayloadsThoughOthersAreMissing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.lostTimeline(t, 1500)
		for i := range 1499 {
			f.do(t, "ZADD", f.key.Timeline, "9e9", fmt.Sprint("bare", i))
		}
		swept, err := f.src.RemoveOrphans(t.Context())
		require.NoError(t, err)
		require.Equal(t, exchange.Swept{Held: 1500, Of: 1500, Key: f.key.Payloads}, swept)
		require.EqualValues(t, 1500, f.rdb.HLen(t.Context(), f.key.Payloads).Val())
	})
}

// TestSweepRemovesRemainsOfEndedTimers checks the bounds: up to 100 payloads, or 1 % of
// them, and any number of records whose payloads are gone, as Python peers leave them.
func TestSweepRemovesRemainsOfEndedTimers(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.lostTimeline(t, 101)
		swept, err := f.src.RemoveOrphans(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 101, swept.Held)
		f.do(t, "HDEL", f.key.Payloads, "lost0")
		r := f.Request(0, time.Minute)
		r.Flow = exchange.Flow{PerKey: 1}
		f.Run(t, r)
		swept, err = f.src.RemoveOrphans(t.Context())
		require.NoError(t, err)
		require.Zero(t, swept.Held)
		require.Equal(t, 100+51+34, swept.Removed)
		require.Equal(t, int64(0), f.rdb.HLen(t.Context(), f.key.Payloads).Val())

		many := f.on(f.topic + "many")
		many.schedule(t, Entry{ID: "live", In: time.Hour})
		for i := range 300 {
			many.do(t, "HSET", many.key.Leases, fmt.Sprint(i), "w:1:1:1700000000:1800000000")
		}
		swept, err = many.src.RemoveOrphans(t.Context())
		require.NoError(t, err)
		require.Equal(t, exchange.Swept{Removed: 300}, swept)
	})
}
