//go:build unix

package sqltest

import (
	"database/sql"
	"flag"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/simulate/fleet"
	"github.com/wakebell/wakebell/outbox"
)

var (
	fleetSeed = flag.Uint64("fleet.seed", 1, "the seed of the first plan")
	fleetRuns = flag.Int("fleet.runs", 3, "how many plans")
	fleetOps  = flag.Int("fleet.ops", 60, "operations of a plan")
)

// TestFleet runs plans of package fleet with an outbox on SQLite, and a relay beside each node. A
// statement that finds the database locked fails at once, because it would wait in real time.
func TestFleet(t *testing.T) {
	t.Parallel()
	for i := range *fleetRuns {
		var p *fleet.Plan
		var r fleet.Result
		file := filepath.Join(t.TempDir(), "outbox.db")
		synctest.Test(t, func(t *testing.T) {
			db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(0)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)")
			require.NoError(t, err)
			box, err := outbox.New(nil, outbox.SQLite, outbox.Config{})
			require.NoError(t, err)
			require.NoError(t, box.Migrate(t.Context(), db))
			p = fleet.Draw(*fleetSeed+uint64(i), *fleetOps, &fleet.Outbox{DB: db, Box: box})
			r = fleet.Run(t.Context(), p)
			require.NoError(t, db.Close())
		})
		r.Report(t, p, false)
		if t.Failed() {
			return
		}
	}
}
