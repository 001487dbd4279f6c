//go:build unix

package sqltest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/queue"
)

// The number of rows and index entries that PostgreSQL reads grows with the number of
// rows that are relayed, not with its square: neither without statistics of the table, nor
// with those of the instant before rows were marked.
func TestPostgreSQLReadsFewRows(t *testing.T) {
	t.Parallel()
	s := postgresql(t, "-c", "autovacuum=off")
	for _, analyzed := range []bool{false, true} {
		w := newWorld(t, s)
		const rows = 4000
		w.fill(t, 1+rows) // refused, but one
		w.publish(t, queue.New[string](redistest.Name(t)), rows)
		if analyzed {
			_, err := w.db.ExecContext(t.Context(), w.rebind("ANALYZE {table}"))
			require.NoError(t, err)
		}
		const query = "SELECT (SELECT COALESCE(seq_tup_read, 0) + COALESCE(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relname = ?) + " +
			"(SELECT SUM(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = ?)"
		observer := w.db
		w.db = server{s.dialect, s.driver, s.dsn + " application_name=" + w.box.Table()}.open(t)
		relay := w.relay(t, measuring(t, w.rdb, time.Hour), quick())
		require.Eventually(t, func() bool { return relay.Status().Relayed == rows+1 }, patience, 10*time.Millisecond)
		within, cancel := context.WithTimeout(t.Context(), patience)
		require.NoError(t, relay.Stop(within))
		cancel()
		require.NoError(t, w.db.Close()) // a connection that ends reports what it has read
		w.db = observer
		require.Eventually(t, func() bool {
			return w.rows(t, "SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = '{table}'") == 0 &&
				w.rows(t, "SELECT n_tup_del FROM pg_stat_user_tables WHERE relname = '{table}'") >= rows
		}, patience, 10*time.Millisecond)
		var read int
		require.NoError(t, w.db.QueryRowContext(t.Context(), w.rebind(query), w.box.Table(), w.box.Table()).Scan(&read))
		require.Less(t, read, 25*2*rows, "with statistics: %t", analyzed)
	}
}
