package firing

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/internal/redistest"
)

// RedBeat has eight weaknesses that wire tests have shown. Each has a test that shows
// its absence: 1 here; 2 TestForeignLock, TestOwnLock and
// TestCrashedBeatIsReplaced; 3 TestBrokenEntries and TestOutage; 4
// TestFailedSends; 5 TestSavingOftenDoesNotStarve; 6 TestFiringCostsLittle,
// BenchmarkFire and, in package recur, TestRRuleIsCheap; 7
// TestDeletedEntriesStayDeleted; 8 TestMisfires, TestOverlaps and, in package
// recur, TestZonesAgainstOracle, TestGaps, TestPlan, TestJitter.

// A beat that was stalled over an instant does not fire it again.
func TestStalledBeatFiresNothingAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, name := range []string{"a", "b", "c"} {
			w.put(name, 10*time.Second, nil)
		}
		stalled := New(Config{
			Store: w.store, Log: slog.New(slog.DiscardHandler), MaxInterval: 300 * time.Second,
			Maker: Maker{Store: w.store, Limit: 1 << 20}, OnFire: w.fired,
		})
		_, err := stalled.Turn(t.Context()) // it has loaded them
		require.NoError(t, err)
		w.engine(nil)
		w.advance(10*time.Second + time.Millisecond)
		require.Equal(t, "a@10#1 b@10#1 c@10#1", sorted(w.recorded()))
		stalled.lookAt = time.Now().Add(time.Hour) // it fires before it reads the schedule
		_, err = stalled.Turn(t.Context())
		require.NoError(t, err)
		require.Empty(t, w.recorded())
		require.Len(t, w.ids("topic"), 3)
	})
}

// When the only beat crashes, the next one fires all entries as soon as it runs.
func TestCrashedBeatIsReplaced(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		own := func(c *Config) { c.Token = "fleet" }
		stop := w.engine(own)
		w.put("a", 10*time.Second, nil)
		w.advance(15 * time.Second)
		require.Equal(t, "a@10#1", w.recorded())
		stop() // the lock remains
		w.engine(own)
		w.advance(6 * time.Second)
		require.Equal(t, "a@20#2", w.recorded())
	})
}

// A thousand entries that are due at the same instant need few round trips, and less
// than eight commands each.
func TestFiringCostsLittle(t *testing.T) {
	t.Parallel()
	const n = 1000
	rdb := redistest.Start(t).Client(t)
	e := loadEntries(t, rdb, n, time.Now().Add(-time.Second))
	fired := 0
	e.cfg.OnFire = func(Fire) { fired++ }
	require.NoError(t, e.look(t.Context())) // loads all
	before := commands(t, rdb)
	for fired < n {
		_, err := e.Turn(t.Context())
		require.NoError(t, err)
	}
	require.Less(t, float64(commands(t, rdb)-before)/n, 8.0)
}

// Entries of each kind fire.
func TestEveryKindFires(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.put("interval", time.Hour, nil)
		w.put("crontab", time.Hour, func(e *recur.Entry) { require.NoError(t, e.SetCrontab(recur.Crontab{Minute: "0"})) })
		w.put("cron", time.Hour, func(e *recur.Entry) { require.NoError(t, e.SetCron("0 0 * * * *")) })
		w.put("rrule", time.Hour, func(e *recur.Entry) {
			rule, err := recur.ParseRRule("FREQ=HOURLY", w.began)
			require.NoError(t, err)
			e.SetRRule(rule)
		})
		w.engine(nil)
		w.advance(2*time.Hour + time.Second)
		require.Equal(t, "cron@3600#1 cron@7200#2 crontab@3600#1 crontab@7200#2 interval@3600#1 interval@7200#2 rrule@3600#1 rrule@7200#2", sorted(w.recorded()))
	})
}
