//go:build unix

package sqltest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/opened"
	"github.com/wakebell/wakebell/outbox"
)

// A pgx.Tx is a transaction too, and the relay works on a pool of pgx.
func testPgx(t *testing.T, s server) {
	t.Parallel()
	w := newWorld(t, s)
	pool, err := pgxpool.New(t.Context(), s.dsn)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	errUndone := errors.New("undone")
	for id, want := range map[string]error{"kept": nil, "undone": errUndone} {
		require.ErrorIs(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			if err := w.box.Schedule(t.Context(), outbox.Pgx(tx), w.topic.Draft("x", wakebell.ID(id), wakebell.In(time.Hour))); err != nil {
				return err
			}
			return want
		}), want)
	}
	w.db = stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { _ = w.db.Close() })
	w.relay(t, w.system(t), quick())
	w.awaitRelayed(t)
	require.Equal(t, map[string]string{"kept": "x"}, w.timers(t))
}

// A commit wakes the relay, which would otherwise look once in a minute.
func testNotify(t *testing.T, s server) {
	t.Parallel()
	w := newWorld(t, s)
	cfg := quick()
	cfg.PollInterval = time.Minute
	cfg.Listen = outbox.PgxListen(w.box, func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, s.dsn) })
	relay := w.relay(t, w.system(t), cfg)
	for i := range 3 {
		began := time.Now()
		w.schedule(t, "x", wakebell.In(time.Hour))
		require.Eventually(t, func() bool { return relay.Status().Relayed == int64(i+1) }, patience, time.Millisecond)
		require.Less(t, time.Since(began), 50*time.Second)
	}
}

// A relay whose connections end in the middle of a batch relays every row, once.
func testTerminated(t *testing.T, s server) {
	t.Parallel()
	w := newWorld(t, s)
	got := newDeliveries()
	cfg := quick()
	cfg.BatchSize = 10
	relayed := server{s.dialect, s.driver, s.dsn + " application_name=" + w.box.Table()}.open(t)
	observer := w.db
	w.db = relayed
	w.relay(t, w.system(t, got.handler(w.topic)), cfg)
	w.db = observer
	const rows = 400
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range rows {
			w.schedule(t, fmt.Sprint(i))
		}
	}()
	for killed := 0; ; killed++ {
		_, err := observer.ExecContext(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", w.box.Table())
		require.NoError(t, err)
		select {
		case <-time.After(30 * time.Millisecond):
			if killed < 60 {
				continue
			}
		case <-done:
		}
		break
	}
	<-done
	w.awaitRelayed(t)
	got.require(t, rows)
}

// The table may be in a schema.
func testSchema(t *testing.T, s server) {
	t.Parallel()
	w := newWorld(t, s)
	_, err := w.db.ExecContext(t.Context(), "CREATE SCHEMA app")
	require.NoError(t, err)
	w.box, err = outbox.New(conntest.Switched(t, w.rdb, connection.Config{}, opened.Switches{Outbox: opened.OutboxSwitches{NoNotify: true}}), s.dialect, outbox.Config{Table: "app.outbox"})
	require.NoError(t, err)
	require.NoError(t, w.box.Migrate(t.Context(), w.db))
	w.schedule(t, "x", wakebell.ID("x"), wakebell.In(time.Hour))
	w.relay(t, w.system(t), quick())
	w.awaitRelayed(t)
	require.Len(t, w.timers(t), 1)
}
