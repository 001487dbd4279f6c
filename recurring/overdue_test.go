package recurring_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/embedded"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

// A schedule is overdue by the clock that beats use, not by that of the process that asks.
func TestScheduleIsOverdueByClockOfRedis(t *testing.T) {
	t.Parallel()
	server := embedded.Start()
	t.Cleanup(server.Close)
	rdb := server.Client()
	t.Cleanup(func() { _ = rdb.Close() })
	s := open(t, rdb, connection.Config{})
	now := time.Now().UTC().Truncate(time.Second)
	server.Miniredis().SetTime(now)
	require.NoError(t, s.Put(t.Context(), reports.Recurring("hourly", recurring.Rule{Every: time.Hour}, "x")))
	overdue := func() time.Duration {
		got, err := s.Get(t.Context(), "hourly")
		require.NoError(t, err)
		for listed, err := range s.List(t.Context(), wakebelltype.Page{}) {
			require.NoError(t, err)
			require.Equal(t, got.Overdue, listed.Overdue)
		}
		return got.Overdue
	}
	require.Zero(t, overdue())
	server.Miniredis().SetTime(now.Add(90 * time.Minute))
	require.Equal(t, 30*time.Minute, overdue())
	require.NoError(t, s.Pause(t.Context(), "hourly"))
	require.Zero(t, overdue(), "a paused schedule has no run")
}
