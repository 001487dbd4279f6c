//go:build unix

// Package sqltest tests package outbox on real databases. It is a module of its own, so
// that users of Wakebell do not depend on database drivers.
package sqltest

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/outbox"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestPostgreSQL(t *testing.T) {
	t.Parallel()
	s := postgresql(t)
	t.Run("", func(t *testing.T) {
		suite(t, func(testing.TB) server { return s })
		t.Run("pgx", func(t *testing.T) { testPgx(t, s) })
		t.Run("notify", func(t *testing.T) { testNotify(t, s) })
		t.Run("terminated connections", func(t *testing.T) { testTerminated(t, s) })
		t.Run("schema", func(t *testing.T) { testSchema(t, s) })
	})
}

func TestSQLite(t *testing.T) {
	t.Parallel()
	suite(t, sqlite)
}

func TestMariaDB(t *testing.T) {
	t.Parallel()
	s := mariadb(t)
	t.Run("", func(t *testing.T) { suite(t, func(testing.TB) server { return s }) })
}

// suite runs the tests that every database has to pass.
func suite(t *testing.T, of func(testing.TB) server) {
	for name, test := range map[string]func(*testing.T, *world){
		"transactions":       testTransactions,
		"order":              testOrder,
		"delays":             testDelays,
		"failed rows":        testFailed,
		"full queue":         testFullQueue,
		"migrations":         testMigrations,
		"outage":             testOutage,
		"killed relays":      testKilledRelays,
		"restored rows":      testRestoredRows,
		"parked rows":        testParkedRowsAreNotRead,
		"unparked":           testUnparked,
		"adopted lanes":      testAdoptedLanes,
		"lanes after errors": testLanesAfterErrors,
		"clock ahead":        testClockAhead,
		"upgrade":            testUpgrade,
		"reserved word":      testReservedWord,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newWorld(t, of(t)))
		})
	}
}

// What a transaction commits is relayed, and what it rolls back is not.
func testTransactions(t *testing.T, w *world) {
	q := queue.New[string](redistest.Name(t))
	cancelled := w.topic.Draft("cancelled", wakebell.ID("cancelled"), wakebell.In(time.Hour))
	w.commit(t, func(tx *sql.Tx) {
		require.NoError(t, w.box.Schedule(t.Context(), tx, w.topic.Draft("a", wakebell.ID("a"), wakebell.In(time.Hour)), cancelled))
		require.NoError(t, w.box.Cancel(t.Context(), tx, w.topic.Name(), cancelled.ID()))
		require.NoError(t, w.box.Publish(t.Context(), tx, q.Draft("1"), q.Draft("2"), q.Draft("3")))
	})
	tx, err := w.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, w.box.Schedule(t.Context(), tx, w.topic.Draft("b", wakebell.ID("b"), wakebell.In(time.Hour))))
	require.NoError(t, w.box.Cancel(t.Context(), tx, w.topic.Name(), "a"))
	require.NoError(t, tx.Rollback())
	require.Equal(t, int64(6), w.stats(t).Waiting)

	sys := w.system(t)
	relay := w.relay(t, sys, quick())
	w.awaitRelayed(t)
	require.Equal(t, map[string]string{"a": "a"}, w.timers(t))
	var published []string
	for m, err := range sys.Client().Queues().Messages(t.Context(), q.Keys(), false, wakebelltype.Page{}) {
		require.NoError(t, err)
		published = append(published, string(m.Payload))
	}
	require.Equal(t, []string{"1", "2", "3"}, published)
	require.Eventually(t, func() bool {
		s := relay.Status()
		return s.Relayed == 6 && !s.Measured.IsZero() && s.Stats == outbox.Stats{}
	}, patience, 10*time.Millisecond)
	require.NoError(t, relay.Status().Err)
}

// Operations of several writers on the same timers take effect in their order, with
// three relays that compete for small batches.
func testOrder(t *testing.T, w *world) {
	const ids, rounds = 12, 12
	for range 3 {
		cfg := quick()
		cfg.BatchSize = 5
		w.relay(t, w.system(t), cfg)
	}
	last := make([]string, ids) // the last body; empty: cancelled
	var writers sync.WaitGroup
	for id := range ids {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(id))) //nolint:gosec // a test
			for round := range rounds {
				name := fmt.Sprint("id ", id)
				last[id] = ""
				w.commit(t, func(tx *sql.Tx) {
					if random.IntN(2) == 0 {
						require.NoError(t, w.box.Cancel(t.Context(), tx, w.topic.Name(), name))
						return
					}
					last[id] = fmt.Sprint("round ", round)
					require.NoError(t, w.box.Schedule(t.Context(), tx, w.topic.Draft(last[id], wakebell.ID(name), wakebell.In(time.Hour))))
				})
			}
		})
	}
	writers.Wait()
	want := map[string]string{}
	for id, body := range last {
		if body != "" {
			want[fmt.Sprint("id ", id)] = body
		}
	}
	w.awaitRelayed(t)
	require.Equal(t, want, w.timers(t))
}

// The time in the outbox is part of a delay.
func testDelays(t *testing.T, w *world) {
	before := time.Now().Truncate(time.Microsecond)
	w.schedule(t, "x", wakebell.ID("x"), wakebell.In(time.Hour))
	after := time.Now()
	<-time.After(100 * time.Millisecond)
	require.GreaterOrEqual(t, w.stats(t).Lag, 100*time.Millisecond)
	sys := w.system(t)
	w.relay(t, sys, quick())
	w.awaitRelayed(t)
	info, _, err := sys.Client().Get(t.Context(), w.topic.Name(), "x")
	require.NoError(t, err)
	require.False(t, info.Due.Before(before.Add(time.Hour)))
	require.False(t, info.Due.After(after.Add(time.Hour+time.Microsecond)))
}

// Rows that cannot be relayed are set aside with their error and do not hold up others.
func testFailed(t *testing.T, w *world) {
	w.schedule(t, "broken", wakebell.ID("broken"), wakebell.In(time.Hour))
	_, err := w.db.ExecContext(t.Context(), w.rebind("UPDATE {table} SET body = ?"), []byte{0xff, 0xff})
	require.NoError(t, err)
	w.schedule(t, "valid", wakebell.ID("broken"), wakebell.In(time.Hour)) // the same timer
	// The limit of the System is lower than that of this outbox.
	tooLong, err := outbox.New(conntest.WithoutRedis(t, connection.Config{PayloadLimit: 2 << 20}), w.server.dialect, outbox.Config{Table: w.box.Table()})
	require.NoError(t, err)
	w.commit(t, func(tx *sql.Tx) {
		large := w.topic.Draft(string(make([]byte, 3<<19)), wakebell.ID("large"))
		require.NoError(t, tooLong.Schedule(t.Context(), tx, large))
	})
	relay := w.relay(t, w.system(t), quick())
	w.awaitRelayed(t)
	require.Equal(t, map[string]string{"broken": "valid"}, w.timers(t))
	rows := w.failed(t)
	require.Len(t, rows, 2)
	require.Equal(t, "broken", rows[0].Timer)
	require.Equal(t, w.topic.Name(), rows[0].Target)
	require.Contains(t, rows[0].Error, "unreadable schedule request")
	require.Equal(t, "large", rows[1].Timer)
	require.Contains(t, rows[1].Error, "the limit is 1048576")
	require.Equal(t, int64(2), w.stats(t).Failed)
	require.Eventually(t, func() bool { return relay.Status().Rejected == 2 }, patience, 10*time.Millisecond, "it counts after the commit")

	n, err := w.box.Retry(t.Context(), w.db, rows[0].Seq)
	require.NoError(t, err)
	require.Equal(t, int64(1), n)
	relay.Wake()
	require.Eventually(t, func() bool { return relay.Status().Rejected == 3 }, patience, 10*time.Millisecond)
	n, err = w.box.Discard(t.Context(), w.db, rows[0].Seq, rows[1].Seq)
	require.NoError(t, err)
	require.Equal(t, int64(2), n)
	require.Equal(t, outbox.Stats{}, w.stats(t))
}

// Messages for a full queue wait in the outbox, in their order, and other rows pass.
func testFullQueue(t *testing.T, w *world) {
	q := queue.New[string](redistest.Name(t), queue.PendingCap(1, queue.FullFails))
	w.commit(t, func(tx *sql.Tx) {
		require.NoError(t, w.box.Publish(t.Context(), tx, q.Draft("1"), q.Draft("2"), q.Draft("3")))
		for i := range 30 {
			require.NoError(t, w.box.Publish(t.Context(), tx, q.Draft(fmt.Sprint(i+4))))
		}
		require.NoError(t, w.box.Schedule(t.Context(), tx, w.topic.Draft("a", wakebell.ID("a"), wakebell.In(time.Hour))))
	})
	sys := w.system(t)
	cfg := quick()
	cfg.BatchSize = 7
	w.relay(t, sys, cfg)
	require.Eventually(t, func() bool { return len(w.timers(t)) == 1 && w.stats(t).Deferred == 32 }, patience, 10*time.Millisecond)
	_, err := sys.Client().Queues().Purge(t.Context(), q.Keys(), false)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		for m, err := range sys.Client().Queues().Messages(t.Context(), q.Keys(), false, wakebelltype.Page{}) {
			require.NoError(t, err)
			return string(m.Payload) == "2"
		}
		return false
	}, patience, 10*time.Millisecond)
}

// Several processes may migrate at once, and again.
func testMigrations(t *testing.T, w *world) {
	box, err := outbox.New(nil, w.server.dialect, outbox.Config{Table: "migrated"})
	require.NoError(t, err)
	grades := func() (all []wakebelltype.Grade) {
		for _, f := range box.Check(t.Context(), w.db) {
			all = append(all, f.Grade)
		}
		return all
	}
	const good, bad, unknown = wakebelltype.GradeGood, wakebelltype.GradeBad, wakebelltype.GradeUnknown
	require.Equal(t, []wakebelltype.Grade{good, bad, unknown, unknown}, grades())
	errs := make(chan error)
	for range 4 {
		go func() { errs <- box.Migrate(t.Context(), w.db) }()
	}
	for range 4 {
		require.NoError(t, <-errs)
	}
	require.NoError(t, box.Migrate(t.Context(), w.db))
	require.Equal(t, []wakebelltype.Grade{good, good, good, good}, grades())
	w.commit(t, func(tx *sql.Tx) {
		require.NoError(t, box.Schedule(t.Context(), tx, w.topic.Draft("x", wakebell.ID("id\x00 with a NUL"))))
	})
	_, err = w.db.ExecContext(t.Context(), "UPDATE migrated SET created_at = created_at - 3600000000, failed_at = NULL")
	require.NoError(t, err)
	require.Equal(t, []wakebelltype.Grade{good, good, bad, good}, grades())
	_, err = w.db.ExecContext(t.Context(), "UPDATE migrated SET failed_at = 1, error = 'x'")
	require.NoError(t, err)
	require.Equal(t, []wakebelltype.Grade{good, good, good, wakebelltype.GradeWarn}, grades())
}

// Rows wait while Redis is away, and are relayed once it is back.
func testOutage(t *testing.T, w *world) {
	redisServer := redistest.Start(t, "--appendonly", "yes")
	w.rdb = redisServer.Client(t)
	sys := w.system(t)
	cfg := quick()
	cfg.Timeout = time.Second
	relay := w.relay(t, sys, cfg)
	w.schedule(t, "a", wakebell.ID("a"), wakebell.In(time.Hour))
	w.awaitRelayed(t)
	redisServer.Kill()
	w.schedule(t, "b", wakebell.ID("b"), wakebell.In(time.Hour))
	require.Eventually(t, func() bool { return relay.Status().Err != nil }, patience, 10*time.Millisecond)
	require.Empty(t, w.failed(t))
	redisServer.Restart(t)
	w.awaitRelayed(t)
	require.Equal(t, map[string]string{"a": "a", "b": "b"}, w.timers(t))
	require.Eventually(t, func() bool { return relay.Status().Err == nil }, patience, 10*time.Millisecond)
}
