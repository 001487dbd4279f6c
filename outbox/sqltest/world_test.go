//go:build unix

package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/opened"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/outbox"
	"github.com/wakebell/wakebell/wakebelltype"
)

var quiet = slog.New(slog.DiscardHandler)

func noLogs(*actor.ActorSystem) *slog.Logger { return quiet }

var tables atomic.Int64

// world is an outbox in a database, and a Redis.
type world struct {
	server server
	db     *sql.DB
	box    *outbox.Outbox
	rdb    redis.UniversalClient
	topic  wakebell.Topic[string]
}

// newWorld makes a table in the database.
func newWorld(t testing.TB, s server) *world {
	t.Helper()
	box, err := outbox.New(nil, s.dialect, outbox.Config{Table: fmt.Sprintf("outbox_%d", tables.Add(1))})
	require.NoError(t, err)
	w := &world{server: s, db: s.open(t), box: box, rdb: redistest.Shared(t), topic: wakebell.NewTopic[string](redistest.Name(t))}
	require.NoError(t, box.Migrate(t.Context(), w.db))
	return w
}

// system starts a System without a log, until the end of the test.
func (w *world) system(t testing.TB, handlers ...wakebell.Handler) *wakebell.System {
	t.Helper()
	return startSystem(t, w.rdb, handlers...)
}

// measuring starts a System whose relays read the statistics at this interval.
func measuring(t testing.TB, rdb redis.UniversalClient, every time.Duration, handlers ...wakebell.Handler) *wakebell.System {
	t.Helper()
	actors := actor.NewActorSystem(actor.WithLoggerFactory(noLogs))
	conn := conntest.Switched(t, rdb, connection.Config{}, opened.Switches{Outbox: opened.OutboxSwitches{MeasureInterval: every}})
	sys, err := wakebell.New(actors, conn, wakebell.Config{Handlers: handlers, DrainTimeout: -1})
	require.NoError(t, err)
	require.NoError(t, sys.Start(t.Context()))
	t.Cleanup(func() { _ = sys.Stop() })
	return sys
}

func startSystem(t testing.TB, rdb redis.UniversalClient, handlers ...wakebell.Handler) *wakebell.System {
	t.Helper()
	return measuring(t, rdb, 100*time.Millisecond, handlers...)
}

// quick is a relay without long waits.
func quick() outbox.RelayConfig {
	return outbox.RelayConfig{PollInterval: 20 * time.Millisecond}
}

// relay starts a relay, until the end of the test.
func (w *world) relay(t testing.TB, sys *wakebell.System, cfg outbox.RelayConfig) *outbox.Relay {
	t.Helper()
	relay, err := w.box.StartRelay(sys, w.db, cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		within, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, relay.Stop(within))
	})
	return relay
}

// commit runs fn in a transaction.
func (w *world) commit(t testing.TB, fn func(tx *sql.Tx)) {
	t.Helper()
	tx, err := w.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	fn(tx)
	require.NoError(t, tx.Commit())
}

// schedule commits a timer of the world's topic.
func (w *world) schedule(t testing.TB, body string, opts ...wakebell.ScheduleOption) {
	t.Helper()
	w.commit(t, func(tx *sql.Tx) {
		require.NoError(t, w.box.Schedule(t.Context(), tx, w.topic.Draft(body, opts...)))
	})
}

func (w *world) stats(t testing.TB) outbox.Stats {
	t.Helper()
	stats, err := w.box.Stats(t.Context(), w.db)
	require.NoError(t, err)
	return stats
}

// awaitRelayed waits until no row waits.
func (w *world) awaitRelayed(t testing.TB) {
	t.Helper()
	require.Eventually(t, func() bool { return w.stats(t).Waiting == 0 }, patience, 10*time.Millisecond)
}

// timers returns the bodies of the stored timers of the world's topic by id.
func (w *world) timers(t testing.TB) map[string]string {
	t.Helper()
	c, err := wakebell.NewClient(conntest.New(t, w.rdb, connection.Config{Logger: quiet}))
	require.NoError(t, err)
	found := map[string]string{}
	for info, err := range c.List(t.Context(), w.topic.Name(), wakebell.Filter{}, wakebelltype.Page{}) {
		require.NoError(t, err)
		_, content, err := c.Get(t.Context(), w.topic.Name(), info.ID)
		if errors.Is(err, wakebell.ErrNotFound) {
			continue // it was handled after it was listed
		}
		require.NoError(t, err)
		found[info.ID] = string(content.Body)
	}
	return found
}

func (w *world) failed(t testing.TB) (rows []outbox.Row) {
	t.Helper()
	for row, err := range w.box.Failed(t.Context(), w.db, wakebelltype.Page{}) {
		require.NoError(t, err)
		rows = append(rows, row)
	}
	return rows
}

// statements returns the statements of a migration.
func statements(script string) (all []string) {
	for text := range strings.SplitSeq(script, ";\n") {
		if text = strings.TrimSpace(text); text != "" {
			all = append(all, text)
		}
	}
	return all
}

// rebind writes a statement with the placeholders of the database.
func (w *world) rebind(query string) string {
	query = strings.ReplaceAll(query, "{table}", w.box.Table())
	if w.server.dialect != outbox.PostgreSQL {
		return query
	}
	for n := 1; strings.Contains(query, "?"); n++ {
		query = strings.Replace(query, "?", fmt.Sprintf("$%d", n), 1)
	}
	return query
}
