package shards

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

func testList(t *testing.T, f *fixture) {
	entries := numbered(50)
	entries = append(entries, timers.Entry{ID: "same b", At: hour}, timers.Entry{ID: "same a", At: hour}, timers.Entry{ID: "now"})
	f.schedule(t, entries...)
	want := []string{"now", "same a", "same b"}
	for _, e := range numbered(50) {
		want = append(want, e.ID)
	}
	for _, limit := range []int{0, 1, 7, 50, 1000} {
		var got []string
		for f2 := (timers.Filter{Limit: limit}); ; {
			page, next, err := f.List(t.Context(), f.topic, f2)
			require.NoError(t, err)
			require.LessOrEqual(t, len(page), max(limit, 100))
			if limit > 0 {
				require.LessOrEqual(t, len(page), limit)
			}
			for _, timer := range page {
				got = append(got, timer.ID)
			}
			if f2.After = next; next == "" {
				break
			}
		}
		require.Equal(t, want, got, "limit %d", limit)
	}
	page, _, err := f.List(t.Context(), f.topic, timers.Filter{DueBefore: hour.Add(2 * time.Second)})
	require.NoError(t, err)
	require.Len(t, page, 5)
	rest, _, err := f.List(t.Context(), f.topic, timers.Filter{After: page[1].Cursor, Limit: 2})
	require.NoError(t, err)
	require.Equal(t, "same b", rest[0].ID, "a listing continues after any of its timers")

	f.claim(t)
	running, next, err := f.List(t.Context(), f.topic, timers.Filter{Leased: true})
	require.NoError(t, err)
	require.Empty(t, next)
	require.Len(t, running, 1)
	require.Equal(t, "now", running[0].ID)
}

func testDead(t *testing.T, f *fixture) {
	const n = 23
	for i := range n {
		f.schedule(t, timers.Entry{ID: fmt.Sprintf("t%d", i)})
	}
	f.deadLetterAll(t)
	var all []timers.DeadLetter
	for after := ""; ; {
		page, next, err := f.DeadLetters(t.Context(), f.topic, wakebelltype.DeadFilter{}, after, 4)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page), 4)
		all = append(all, page...)
		if after = next; next == "" {
			break
		}
	}
	require.Len(t, all, n)
	entries, ids := map[string]bool{}, map[string]bool{}
	for i, d := range all {
		entries[d.Entry], ids[d.ID] = true, true
		if i > 0 {
			require.False(t, d.At.Before(all[i-1].At.Truncate(time.Millisecond)), "the oldest first")
		}
		one, err := f.DeadLetter(t.Context(), f.topic, d.Entry)
		require.NoError(t, err)
		require.Equal(t, d, one)
		rest, _, err := f.DeadLetters(t.Context(), f.topic, wakebelltype.DeadFilter{}, d.Entry, 100)
		require.NoError(t, err)
		require.Len(t, rest, n-1-i, "a listing continues after any dead letter")
	}
	require.Len(t, entries, n)
	require.Len(t, ids, n)
	last, err := f.LastDead(t.Context(), f.topic, 5)
	require.NoError(t, err)
	require.Len(t, last, 5)
	_, err = f.DeadLetter(t.Context(), f.topic, "1-1~64~3")
	require.Error(t, err)

	reported := map[string]bool{}
	one, err := f.Redrive(t.Context(), f.topic, wakebelltype.RedriveOptions{
		Filter: wakebelltype.DeadFilter{Entry: all[3].Entry}, Each: func(l wakebelltype.RedrivenLetter) { reported[l.Entry] = true },
	})
	require.NoError(t, err)
	require.EqualValues(t, 1, one.Redriven)
	require.Equal(t, map[string]bool{all[3].Entry: true}, reported)
	deleted, err := f.DeleteDead(t.Context(), f.topic, wakebelltype.DeadFilter{Entry: all[4].Entry})
	require.NoError(t, err)
	require.EqualValues(t, 1, deleted)
	rest, err := f.Redrive(t.Context(), f.topic, wakebelltype.RedriveOptions{Rate: 10_000})
	require.NoError(t, err)
	require.EqualValues(t, n-2, rest.Redriven)
	timer, err := f.Get(t.Context(), f.topic, all[3].ID)
	require.NoError(t, err)
	require.Equal(t, "payload of "+all[3].ID, string(timer.Payload))
	deleted, err = f.DeleteDead(t.Context(), f.topic, wakebelltype.DeadFilter{})
	require.NoError(t, err)
	require.Zero(t, deleted)
}

func testHistory(t *testing.T, f *fixture) {
	names, err := f.all(t.Context(), f.topic)
	require.NoError(t, err)
	began := time.Now().Add(-time.Hour).Truncate(time.Millisecond).UTC()
	for round := range 3 { // two attempts in an entry of each shard
		for i, name := range names {
			var attempts []wakebelltype.Attempt
			for j := range 2 {
				attempts = append(attempts, wakebelltype.Attempt{
					ID: fmt.Sprintf("%d %d %d", round, i, j), Attempt: 1, Outcome: wakebelltype.EventAcked, Started: began.Add(time.Duration(round) * time.Minute),
				})
			}
			require.NoError(t, f.timers.WriteHistory(t.Context(), name, "node", attempts))
		}
	}
	total := 6 * len(names)
	for _, limit := range []int{1, 5, 100} {
		seen := map[string]bool{}
		var listed []wakebelltype.Attempt
		for after := ""; ; {
			page, next, err := f.History(t.Context(), f.topic, wakebelltype.HistoryFilter{}, after, limit)
			require.NoError(t, err)
			require.LessOrEqual(t, len(page), limit)
			for _, a := range page {
				require.False(t, seen[a.ID], a.ID)
				seen[a.ID] = true
			}
			listed = append(listed, page...)
			if after = next; next == "" {
				break
			}
		}
		require.Len(t, seen, total, "limit %d", limit)
		require.True(t, slices.IsSortedFunc(listed, func(a, b wakebelltype.Attempt) int {
			x, err := readSpot(a.Cursor, f.topic)
			require.NoError(t, err)
			y, err := readSpot(b.Cursor, f.topic)
			require.NoError(t, err)
			return x.compare(y)
		}))
	}
	last, err := f.LastHistory(t.Context(), f.topic, wakebelltype.HistoryFilter{}, 2*len(names))
	require.NoError(t, err)
	require.Len(t, last, 2*len(names))
	for _, a := range last {
		require.Equal(t, began.Add(2*time.Minute), a.Started)
	}
}

func testCounts(t *testing.T, f *fixture) {
	entries := numbered(30)
	for i := range 10 {
		entries = append(entries, timers.Entry{ID: fmt.Sprintf("due%d", i)})
	}
	f.schedule(t, entries...)
	st, err := f.Stats(t.Context(), f.topic)
	require.NoError(t, err)
	require.EqualValues(t, 40, st.Total)
	require.EqualValues(t, 10, st.Due)
	require.EqualValues(t, 30, st.Pending)
	require.False(t, st.OldestDue.IsZero())
	_, leases := f.claim(t)
	require.Len(t, slices.Concat(leases...), 10)

	o, err := f.Overview(t.Context(), f.topic, f.topic+"-other")
	require.NoError(t, err)
	require.Len(t, o, 2)
	require.NoError(t, o[0].Err)
	require.Equal(t, f.topic, o[0].Topic)
	require.EqualValues(t, 10, o[0].Stats.Leased)
	require.EqualValues(t, 30, o[0].Stats.Pending)
	require.Zero(t, o[1].Stats.Total)

	th, err := f.Throughput(t.Context(), f.topic, 5*time.Minute)
	require.NoError(t, err)
	var scheduled int64
	for _, p := range th.Points {
		scheduled += p.Scheduled
	}
	require.EqualValues(t, 40, scheduled)
	backlog, err := f.Backlog(t.Context(), f.topic)
	require.NoError(t, err)
	require.Len(t, backlog, 1)
	require.Equal(t, f.topic, backlog[0].Topic)
}
