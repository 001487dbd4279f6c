package timers

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/wakebelltype"
)

const day = 24 * time.Hour

// sum adds up the points of a throughput.
func sum(t *testing.T, s *Timers, topic string, since time.Duration) (all wakebelltype.ThroughputCounts) {
	t.Helper()
	found, err := s.Throughput(t.Context(), topic, since)
	require.NoError(t, err)
	for _, p := range found.Points {
		all.Started, all.Lateness, all.MaxLateness = all.Started+p.Started, all.Lateness+p.Lateness, max(all.MaxLateness, p.MaxLateness)
		all.Latenesses = all.Latenesses.Plus(p.Latenesses)
		all.Scheduled, all.Handled, all.Failed, all.Dead = all.Scheduled+p.Scheduled, all.Handled+p.Handled, all.Failed+p.Failed, all.Dead+p.Dead
	}
	return all
}

func TestCountsOfCallAreWrittenOnce(t *testing.T) {
	t.Parallel()
	embedded, _ := redistest.Embedded(t)
	for _, rdb := range []*redis.Client{redistest.Shared(t), embedded} {
		s, err := New(rdb, wakebelltype.Keys{})
		require.NoError(t, err)
		topic, ctx := redistest.Name(t), t.Context()
		_, err = s.Schedule(ctx, topic, Entry{ID: "a", Payload: []byte("x")}, Entry{ID: "b", Payload: []byte("x"), In: time.Hour})
		require.NoError(t, err)
		_, err = s.Schedule(ctx, topic, Entry{ID: "a", Payload: []byte("x"), Policy: wakebelltype.PolicyKeep}) // changes nothing
		require.NoError(t, err)
		_, err = s.Schedule(ctx, topic, Entry{ID: "a", Payload: []byte("x")}) // replaces
		require.NoError(t, err)
		for range 2 { // a repeated call
			require.NoError(t, s.WriteCounts(ctx, topic, "me", 1, wakebelltype.ThroughputCounts{
				Handled: 5, Failed: 3, Dead: 1, Started: 9, Lateness: 9 * time.Millisecond, MaxLateness: 5 * time.Millisecond,
				Latenesses: wakebelltype.Latenesses{8, 0, 1},
			}))
		}
		require.NoError(t, s.WriteCounts(ctx, topic, "me", 2, wakebelltype.ThroughputCounts{
			Handled: 1, Started: 1, Lateness: time.Millisecond, MaxLateness: time.Millisecond,
			Latenesses: wakebelltype.Latenesses{1, 25: 2},
		}))
		want := wakebelltype.ThroughputCounts{
			Scheduled: 3, Handled: 6, Failed: 3, Dead: 1, Started: 10, Lateness: 10 * time.Millisecond, MaxLateness: 5 * time.Millisecond,
			Latenesses: wakebelltype.Latenesses{9, 0, 1, 25: 2},
		}
		for _, since := range []time.Duration{10 * time.Minute, 24 * time.Hour, 90 * day} {
			require.Equal(t, want, sum(t, s, topic, since), since)
		}
		s.NoCounts = true
		_, err = s.Schedule(ctx, topic, Entry{ID: "c", Payload: []byte("x")})
		require.NoError(t, err)
		require.Equal(t, want, sum(t, s, topic, time.Hour))
		for _, since := range []time.Duration{0, time.Second, 91 * day} {
			_, err = s.Throughput(ctx, topic, since)
			require.ErrorIs(t, err, wakebelltype.ErrInvalid)
		}
		require.NoError(t, s.Forget(ctx, topic))
		require.Zero(t, sum(t, s, topic, time.Hour))
	}
}

// Counts stay by minute for a day and by day for 90 days, and no longer.
func TestCountsAgeInVirtualTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		s, err := New(rdb, wakebelltype.Keys{})
		require.NoError(t, err)
		call, began := uint64(0), time.Now()
		write := func(n int64) {
			call++
			require.NoError(t, s.WriteCounts(t.Context(), "t", "me", call, wakebelltype.ThroughputCounts{
				Handled: n, Dead: n, Started: n, Lateness: time.Duration(n) * time.Second, MaxLateness: time.Duration(call) * time.Second,
				Latenesses: wakebelltype.Latenesses{n, 20: 10 * n},
			}))
		}
		for range 10 * 24 { // 10 days
			write(1)
			<-time.After(time.Hour)
		}
		require.EqualValues(t, 23, sum(t, s, "t", 24*time.Hour).Handled, "the minute that has just begun is one of them, and has none")
		require.EqualValues(t, 5, sum(t, s, "t", 6*time.Hour).Dead)
		require.EqualValues(t, 240, sum(t, s, "t", 30*day).Handled)
		found, err := s.Throughput(t.Context(), "t", 5*day)
		require.NoError(t, err)
		require.Len(t, found.Points, 5)
		for _, p := range found.Points[1:4] {
			require.EqualValues(t, 24, p.Handled)
			require.Equal(t, time.Second, p.MeanLateness())
			require.Equal(t, wakebelltype.Latenesses{24, 20: 240}, p.Latenesses)
			require.Equal(t, p.At.Sub(began)+day, p.MaxLateness*3600, "that of the last hour of the day")
			require.Zero(t, p.At.Hour())
		}
		require.Less(t, rdb.HLen(t.Context(), "timers_counts:t").Val(), int64(6*(31+11)+1), "minutes of a day and 6 hours, and the days before")
		<-time.After(85 * day)
		write(1)
		require.LessOrEqual(t, sum(t, s, "t", 90*day).Handled, int64(7*24+1))
		<-time.After(91 * day)
		require.Zero(t, rdb.Exists(t.Context(), "timers_counts:t").Val(), "it expires")
	})
}

// A schedule does not depend on its count.
func TestSchedulePassesWhenItCannotBeCounted(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	s, err := New(rdb, wakebelltype.Keys{})
	require.NoError(t, err)
	topic := redistest.Name(t)
	require.NoError(t, rdb.Set(t.Context(), "timers_counts:"+topic, "x", 0).Err())
	_, err = s.Schedule(t.Context(), topic, Entry{ID: "a", Payload: []byte("x")})
	require.NoError(t, err)
	require.ErrorIs(t, s.WriteCounts(t.Context(), topic, "me", 1, wakebelltype.ThroughputCounts{Handled: 1}), wakebelltype.ErrWrongType)
	_, err = s.Throughput(t.Context(), topic, time.Hour)
	require.ErrorIs(t, err, wakebelltype.ErrWrongType)
}

// TestOverviewCountsLastMinutes leaves out what is older than [wakebelltype.RecentFor].
func TestOverviewCountsLastMinutes(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		now, err := f.rdb.Time(t.Context()).Result()
		require.NoError(t, err)
		for minutes, handled := range map[int64]int{0: 1, 8: 2, 12: 4} {
			f.do(t, "HSET", f.key.Counts, strconv.FormatInt(now.Unix()/60-minutes, 10)+"h", strconv.Itoa(handled))
		}
		f.do(t, "HSET", f.key.Counts, strconv.FormatInt(now.Unix()/60-1, 10)+"m", "5000", strconv.FormatInt(now.Unix()/60, 10)+"f", "x")
		all, err := f.Overview(t.Context(), f.topic)
		require.NoError(t, err)
		require.Equal(t, int64(3), all[0].Recent.Handled)
		require.Equal(t, 5*time.Millisecond, all[0].Recent.MaxLateness)
		require.Zero(t, all[0].Recent.Failed)
		f.do(t, "DEL", f.key.Counts)
		f.do(t, "SET", f.key.Counts, "of another type")
		all, err = f.Overview(t.Context(), f.topic)
		require.NoError(t, err)
		require.NoError(t, all[0].Err)
		require.Zero(t, all[0].Recent.Handled)
	})
}
