package recurring

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/recur"
)

func TestAttendanceCountsSchedulesAndBeats(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		attendance := func() Attendance {
			t.Helper()
			a, err := f.Attendance(t.Context())
			require.NoError(t, err)
			return a
		}
		require.Equal(t, Attendance{}, attendance())

		now, err := f.Now(t.Context())
		require.NoError(t, err)
		score := func(name string, at time.Time) {
			t.Helper()
			require.NoError(t, f.Put(t.Context(), name, recur.Raw{}, raw(name), recur.Score(at)))
		}
		score("later", now.Add(time.Hour))
		require.NoError(t, f.Put(t.Context(), "ended", recur.Raw{}, raw("ended"), -1))
		require.Equal(t, Attendance{Schedules: 2}, attendance(), "nothing is overdue")

		score("late", now.Add(-time.Minute))
		score("latest", now.Add(-time.Hour))
		a := attendance()
		require.Equal(t, "latest", a.Latest)
		require.InDelta(t, time.Hour.Seconds(), a.Overdue.Seconds(), 30)
		require.Equal(t, Attendance{Schedules: 4, Overdue: a.Overdue, Latest: "latest"}, a)

		ctx, cancel := context.WithCancel(t.Context())
		listening, ended := make(chan struct{}, 100), make(chan error, 1)
		go func() { ended <- f.Listen(ctx, func(int) { listening <- struct{}{} }) }()
		<-listening
		require.Equal(t, int64(1), attendance().Beats, "a beat of Wakebell is subscribed")
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.Eventually(t, func() bool { return attendance().Beats == 0 }, 30*time.Second, 10*time.Millisecond)

		require.NoError(t, f.rdb.Set(t.Context(), f.lock(), "python", time.Minute).Err())
		require.Equal(t, int64(1), attendance().Beats, "a beat of Python holds the lock")
	})
}
