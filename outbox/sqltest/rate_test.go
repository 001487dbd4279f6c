//go:build unix

package sqltest

import (
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/queue"
)

// BenchmarkBlocked measures how fast a relay sends 10,000 timers that are written between
// 90,000 rows that Redis refuses: half of them messages for a full queue, half timers of
// a topic whose key has another type. Run it once: `make outbox-bench`.
func BenchmarkBlocked(b *testing.B) {
	ofDefaultSize := func(t testing.TB) server { return mariadb(t, "--innodb-buffer-pool-size=128M") }
	for _, of := range []func(testing.TB) server{sqlite, func(t testing.TB) server { return postgresql(t) }, ofDefaultSize} {
		s := of(b)
		b.Run(s.dialect.String(), func(b *testing.B) {
			for b.Loop() {
				benchmarkBlocked(b, newWorld(b, s))
			}
		})
	}
}

func benchmarkBlocked(b *testing.B, w *world) {
	b.StopTimer()
	const rows, part = 100_000, 1000
	q := w.fill(b, 1)
	refused := wakebell.NewTopic[string](redistest.Name(b))
	require.NoError(b, w.rdb.Set(b.Context(), "timers_timeline:"+refused.Name(), "not a sorted set", 0).Err())
	for range rows / part {
		w.commit(b, func(tx *sql.Tx) {
			for i := range part / 10 {
				drafts := []wakebell.Draft{w.topic.Draft("a body of a usual size", wakebell.In(time.Hour))}
				for range 4 + i%2 {
					drafts = append(drafts, refused.Draft("a body of a usual size", wakebell.In(time.Hour)))
				}
				require.NoError(b, w.box.Schedule(b.Context(), tx, drafts...))
				for range 5 - i%2 {
					require.NoError(b, w.box.Publish(b.Context(), tx, q.Draft("a body of a usual size")))
				}
			}
		})
	}
	for _, f := range w.box.Check(b.Context(), w.db)[:1] {
		b.Log(f.Found)
	}
	sys, cfg := measuring(b, w.rdb, time.Second), quick()
	b.StartTimer()
	began := time.Now()
	relay := w.relay(b, sys, cfg)
	require.Eventually(b, func() bool { return relay.Status().Relayed == rows/10+1 }, 10*patience, time.Millisecond)
	b.ReportMetric(float64(rows/10)/time.Since(began).Seconds(), "rows/s")
	b.StopTimer()
	stats, err := w.box.Stats(b.Context(), w.db)
	require.NoError(b, err)
	require.Equal(b, int64(10_000), stats.Waiting)
	b.StartTimer()
}

// The number of rows that MariaDB reads grows with the number of rows that are relayed,
// not with its square.
func TestMariaDBReadsFewRows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, mariadb(t))
	const rows = 4000
	w.fill(t, 1+rows) // refused, but one
	w.publish(t, queue.New[string](redistest.Name(t)), rows)
	read := func() (n int) {
		const query = "SELECT CAST(SUM(variable_value) AS INT) FROM information_schema.global_status WHERE variable_name LIKE 'handler_read%'"
		require.NoError(t, w.db.QueryRowContext(t.Context(), query).Scan(&n))
		return n
	}
	before := read()
	relay := w.relay(t, measuring(t, w.rdb, time.Hour), quick())
	require.Eventually(t, func() bool { return relay.Status().Relayed == rows+1 }, patience, 10*time.Millisecond)
	require.Less(t, read()-before, 60*rows)
}
