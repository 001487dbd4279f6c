//go:build unix

package sqltest

import (
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
)

// BenchmarkRelay measures a relay with a backlog on PostgreSQL, per row.
func BenchmarkRelay(b *testing.B) {
	w := newWorld(b, postgresql(b))
	sys := w.system(b)
	for left := b.N; left > 0; left -= 1000 {
		drafts := make([]wakebell.Draft, min(left, 1000))
		for i := range drafts {
			drafts[i] = w.topic.Draft("a body of a usual size", wakebell.In(time.Hour))
		}
		w.commit(b, func(tx *sql.Tx) { require.NoError(b, w.box.Schedule(b.Context(), tx, drafts...)) })
	}
	b.ResetTimer()
	relay := w.relay(b, sys, quick())
	require.Eventually(b, func() bool { return relay.Status().Relayed == int64(b.N) }, 10*patience, time.Millisecond)
	b.StopTimer()
}

// BenchmarkEnqueue measures a transaction with one timer, on PostgreSQL without fsync,
// and one without.
func BenchmarkEnqueue(b *testing.B) {
	w := newWorld(b, postgresql(b))
	for name, enqueue := range map[string]bool{"timer": true, "without": false} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				w.commit(b, func(tx *sql.Tx) {
					_, err := tx.ExecContext(b.Context(), "SELECT 1")
					require.NoError(b, err)
					if enqueue {
						require.NoError(b, w.box.Schedule(b.Context(), tx, w.topic.Draft("x", wakebell.In(time.Hour))))
					}
				})
			}
		})
	}
}
