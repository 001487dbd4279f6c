//go:build !race

package timers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestStatsCountEachTimerOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		require.Zero(t, f.stats(t))
		f.due(t, "leased", "leased too", "retrying", "dead", "expired", "retried and due", "due", "due too")
		l := f.Claim(t, 4).Leases
		retry := storetest.Verdict(exchange.Nack, l[2])
		retry.Delay = time.Hour
		f.Settle(t, retry, storetest.Verdict(exchange.DeadLetter, l[3]))
		expired := f.Run(t, f.Request(1, time.Millisecond)).Leases[0]
		f.Settle(t, storetest.Verdict(exchange.Nack, f.Claim(t, 1).Leases[0]))
		require.Eventually(t, func() bool { return f.now(t).After(f.get(t, expired.ID).Due) }, 30*time.Second, time.Millisecond)
		f.schedule(t, Entry{ID: "pending", In: time.Hour},
			Entry{ID: "debounced", Policy: wakebelltype.PolicyDebounce, In: time.Hour},
			Entry{ID: "at a peer", In: time.Hour})
		f.peerClaim(t, "at a peer", time.Minute)
		f.peerPublish(t, "never", 9e17)
		require.NoError(t, f.rdb.HSet(t.Context(), f.key.Leases, "orphan", "l:1:0:1:9e9").Err())

		st := f.stats(t)
		oldest := f.get(t, "due")
		require.Equal(t, oldest.Due, st.OldestDue)
		require.InDelta(t, f.now(t).Sub(oldest.Due), st.Lag, float64(time.Minute))
		st.OldestDue, st.Lag = time.Time{}, 0
		require.Equal(t, wakebelltype.Stats{Total: 11, Pending: 4, Due: 4, Leased: 2, Retrying: 1, Dead: 1}, st)

		paused, err := f.Pause(t.Context(), f.topic, "", "")
		require.NoError(t, err)
		st = f.stats(t)
		require.True(t, st.Paused)
		require.Equal(t, paused.PausedAt, st.PausedAt)
	})
}

// Above 1,000 lease records Stats reads a sample; the sum stays exact.
func TestStatsOfManyLeasesAreEstimated(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		names := numbered(6 * claimMost)
		f.plant(t, 1, names...)
		for round := range 6 {
			reply := f.Claim(t, 3000)
			require.Len(t, reply.Leases, claimMost)
			var list []exchange.Settlement
			for _, l := range reply.Leases {
				nack := storetest.Verdict(exchange.Nack, l)
				nack.Delay = time.Hour
				list = append(list, nack)
			}
			if round%2 == 0 {
				f.Settle(t, list...)
			}
		}
		st := f.stats(t)
		require.True(t, st.Estimated)
		require.EqualValues(t, 6*claimMost, st.Total)
		require.Equal(t, st.Total, st.Pending+st.Due+st.Leased+st.Retrying)
		require.InDelta(t, 3*claimMost, st.Leased, claimMost)
		require.InDelta(t, 3*claimMost, st.Retrying, claimMost)
	})
}

// TestStatsAreCheap checks that the cost of Stats does not grow with the topic.
func TestStatsAreCheap(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Start(t).Client(t))
	for i := range 20 {
		names := numbered(10_000)
		for j := range names {
			names[j] = fmt.Sprint(i, "-", names[j])
		}
		f.plant(t, 1, names...)
	}
	for range 4 {
		f.Claim(t, claimMost)
	}
	require.NoError(t, f.rdb.ConfigSet(t.Context(), "slowlog-log-slower-than", "0").Err())
	spends := func(call func()) (all time.Duration) {
		require.NoError(t, f.rdb.SlowLogReset(t.Context()).Err())
		call()
		for _, entry := range f.rdb.SlowLogGet(t.Context(), -1).Val() {
			if strings.HasPrefix(strings.ToLower(entry.Args[0]), "eval") {
				all += entry.Duration
			}
		}
		require.Positive(t, all)
		return all
	}
	read, scan := time.Hour, time.Hour
	for range 10 { // in turn, so that what else the machine does concerns both
		read = min(read, spends(func() { require.EqualValues(t, 200_000-4*claimMost, f.stats(t).Due) }))
		scan = min(scan, spends(func() {
			require.NoError(t, f.rdb.Eval(t.Context(), `return #redis.call('ZRANGE', KEYS[1], 0, -1)`, []string{f.key.Timeline}).Err())
		}))
	}
	require.Less(t, read, scan/2, "as if it read each timer")
}

func TestStatsAreChecked(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t))
	_, err := f.Stats(t.Context(), "")
	require.ErrorIs(t, err, wakebelltype.ErrInvalid)
	require.NoError(t, f.rdb.Set(t.Context(), f.key.Control, "x", 0).Err())
	_, err = f.Stats(t.Context(), f.topic)
	require.ErrorIs(t, err, wakebelltype.ErrWrongType)
	require.ErrorContains(t, err, f.key.Control)
	for _, bad := range [][]any{
		{"x"},
		{1, "1", "1", "1", "1", "1", "1", "1", "", ""},
		{"x", "1", "1", "1", "1", "1", "1", "1", "", ""},
		{"1", "x", "1", "1", "1", "1", "1", "1", "", ""},
		{"1", "1", "1", "1", "1", "1", "1", "1", "x", ""},
	} {
		_, err = readStats(bad)
		require.ErrorIs(t, err, scripts.ErrReply)
	}
}
