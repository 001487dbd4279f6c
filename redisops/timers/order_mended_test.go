package timers

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// drained claims and acks with PerKey(limit) until nothing is due, and returns the ids.
func (f *fixture) drained(t *testing.T, limit int, settle ...exchange.Settlement) (ids []string) {
	t.Helper()
	for {
		reply := f.perKey(t, limit, 10, settle...)
		if len(reply.Leases) == 0 {
			return ids
		}
		ids, settle = append(ids, storetest.IDs(reply.Leases)...), acks(reply.Leases)
	}
}

// A timer of the order that is no longer due does not hold up those after it, however it was
// moved.
func TestTimerThatMovedIntoFutureHoldsUpNone(t *testing.T) {
	t.Parallel()
	later := time.Now().Add(time.Hour)
	for name, move := range map[string]func(t *testing.T, f *fixture, id string){
		"a schedule without the key": func(t *testing.T, f *fixture, id string) { f.schedule(t, Entry{ID: id, At: later}) },
		"a call with an idempotency key": func(t *testing.T, f *fixture, id string) {
			_, err := f.scheduleKeyed(t.Context(), NewKey("me", "k", nil), Entry{ID: id, At: later})
			require.NoError(t, err)
		},
		"a large batch": func(t *testing.T, f *fixture, id string) {
			entries := []Entry{{ID: id, At: later}}
			for i := range 50 {
				entries = append(entries, Entry{ID: fmt.Sprint("other", i), At: later})
			}
			f.schedule(t, entries...)
			f.schedule(t, entries...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, moved := range []string{"a", "b"} { // the holder, and the next one
				onEach(t, func(t *testing.T, f *fixture) {
					f.dueOf(t, "k", "a", "b", "c")
					a := f.perKey(t, 1, 10).Leases[0]
					require.Empty(t, f.perKey(t, 1, 10).Leases)
					move(t, f, moved)
					require.Equal(t, "k", f.get(t, moved).Key)
					var settle []exchange.Settlement
					want := []string{"b", "c"}
					if moved == "b" {
						settle, want = append(settle, ack(a)), []string{"c"}
					}
					require.Equal(t, want, f.drained(t, 1, settle...))
				})
			}
		})
	}
}

// A Python client knows no keys: it writes the score alone.
func TestTimerThatPeerMovesHoldsUpNone(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.dueOf(t, "k", "a", "b", "c")
		a := f.perKey(t, 1, 10).Leases[0]
		require.Empty(t, f.perKey(t, 1, 10).Leases)
		f.do(t, "zadd", f.key.Timeline, "9999999999", "b")
		require.Equal(t, []string{"c"}, f.drained(t, 1, ack(a)))
	})
}

// TestStaleTimersOfKeyHoldUpNone has a node without PerKey handle timers with a key: they
// stay in the order of the key.
func TestStaleTimersOfKeyHoldUpNone(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t))
	const stale = 5000
	f.scheduleMany(t, "stale", stale, func(int) string { return "k" })
	for handled, leases := 0, []exchange.Lease(nil); handled < stale; handled += len(leases) {
		r := f.Request(500, time.Minute)
		r.Settle = acks(leases)
		f.src.byKey.Store(false)
		leases = f.Run(t, r).Leases
		require.NotEmpty(t, leases)
	}
	f.Run(t, f.Request(0, time.Minute))
	f.do(t, "del", f.key.Timeline, f.key.Leases)
	want := []string{"a", "b", "c", "d", "e"}
	f.dueOf(t, "k", want...)
	var got []string
	for rounds, settle := 0, []exchange.Settlement(nil); len(got) < len(want); rounds++ {
		require.Less(t, rounds, 20)
		reply := f.perKey(t, 1, 10, settle...)
		got, settle = append(got, storetest.IDs(reply.Leases)...), acks(reply.Leases)
		if len(got) == 0 {
			require.LessOrEqual(t, reply.Next, time.Microsecond, "the next exchange goes on at once")
		}
	}
	require.Equal(t, want, got)
}

// TestSweepFindsEveryParkedTimer loses or falsifies what is stored of keys.
func TestSweepFindsEveryParkedTimer(t *testing.T) {
	t.Parallel()
	entry := func(flag string) string { return fmt.Sprintf("%033d%s%s", 7, flag, "k") }
	for name, spoil := range map[string]func(t *testing.T, f *fixture){
		"nothing":     func(*testing.T, *fixture) {},
		"no order":    func(t *testing.T, f *fixture) { f.do(t, "del", f.key.KeyOrder) },
		"no states":   func(t *testing.T, f *fixture) { f.do(t, "del", f.key.KeyStates) },
		"no entries":  func(t *testing.T, f *fixture) { f.do(t, "del", f.key.TimerKeys) },
		"no records":  func(t *testing.T, f *fixture) { f.do(t, "del", f.key.Leases) },
		"nothing but": func(t *testing.T, f *fixture) { f.do(t, "del", f.key.KeyOrder, f.key.KeyStates, f.key.TimerKeys) },
		"a sole one": func(t *testing.T, f *fixture) {
			f.do(t, "hset", f.key.KeyStates, "k", "sc")
			f.do(t, "hset", f.key.TimerKeys, "c", entry("s"))
			f.do(t, "del", f.key.KeyOrder)
		},
		"another sole one": func(t *testing.T, f *fixture) { f.do(t, "hset", f.key.KeyStates, "k", "sgone") },
		"a parked holder":  func(t *testing.T, f *fixture) { f.do(t, "hset", f.key.KeyStates, "k", "m1 b") },
		"a parked holder with failures": func(t *testing.T, f *fixture) {
			f.do(t, "hset", f.key.KeyStates, "k", "m1 b")
			f.do(t, "hset", f.key.Leases, "b", "w:1:1:1700000000:253402300800:1700000000:error")
		},
		"holders that are gone": func(t *testing.T, f *fixture) { f.do(t, "hset", f.key.KeyStates, "k", "m4 gone4 more") },
		"unreadable holders":    func(t *testing.T, f *fixture) { f.do(t, "hset", f.key.KeyStates, "k", "m9 a") },
		"many holders that are gone": func(t *testing.T, f *fixture) {
			f.do(t, "hset", f.key.KeyStates, "k", "x")
			for i := range 300 {
				f.do(t, "zadd", f.key.KeyOrder, "0", fmt.Sprintf("h001kgone%d", i))
			}
		},
		"places in the future, behind a timer that is": func(t *testing.T, f *fixture) {
			f.schedule(t, Entry{ID: "later", Key: "k", Payload: []byte("later"), At: time.Now().Add(24 * time.Hour)})
			for _, id := range []string{"b", "c"} {
				was, err := f.rdb.HGet(t.Context(), f.key.TimerKeys, id).Result()
				require.NoError(t, err)
				const place = "009999999999000000000000000000007"
				f.do(t, "zrem", f.key.KeyOrder, "001k"+was[:len(place)]+id)
				f.do(t, "zadd", f.key.KeyOrder, "0", "001k"+place+id)
				f.do(t, "hset", f.key.TimerKeys, id, place+"mk")
			}
		},
		"a holder that moved": func(t *testing.T, f *fixture) { f.do(t, "zadd", f.key.Timeline, "9999999999", "a") },
		"a holder that was debounced": func(t *testing.T, f *fixture) {
			f.do(t, "zadd", f.key.Timeline, "9999999999", "a")
			f.do(t, "hset", f.key.Leases, "a", "w:0:0:9999999999:9999999999:~1700000000")
		},
		"entries of another key": func(t *testing.T, f *fixture) {
			for _, id := range []string{"b", "c"} {
				f.do(t, "hset", f.key.TimerKeys, id, fmt.Sprintf("%033dmother", 7))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, limit := range []int{1, 2, 0} {
				t.Run(strconv.Itoa(limit), func(t *testing.T) {
					t.Parallel()
					f := newFixture(t, redistest.Shared(t))
					f.dueOf(t, "k", "a", "b", "c", "d")
					a := f.perKey(t, 1, 10).Leases[0]
					require.Empty(t, f.perKey(t, 1, 10).Leases)
					spoil(t, f)
					require.NoError(t, f.src.SweepKeys(t.Context(), exchange.Flow{PerKey: limit}))
					got := append(f.drained(t, limit, ack(a)), "a")
					require.NoError(t, f.src.SweepKeys(t.Context(), exchange.Flow{PerKey: limit}))
					got = append(got, f.drained(t, limit)...)
					slices.Sort(got)
					require.Equal(t, []string{"a", "b", "c", "d"}, got)
				})
			}
		})
	}
}
