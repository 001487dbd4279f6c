//go:build unix

package sqltest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/outbox"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

// order tells a relay process what to relay, and when to kill itself.
type order struct {
	Dialect            outbox.Dialect
	Driver, DSN, Table string
	Redis              string
	Statement          string // the process ends before the Nth statement that begins so
	Nth                int64
}

const orderVariable = "WAKEBELL_OUTBOX_RELAY"

func TestMain(m *testing.M) {
	if text := os.Getenv(orderVariable); text != "" {
		if err := relayProcess(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	redistest.Main(m)
}

// relayProcess relays until it kills itself.
func relayProcess(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	box, err := outbox.New(nil, o.Dialect, outbox.Config{Table: o.Table})
	if err != nil {
		return err
	}
	inner, err := sql.Open(o.Driver, o.DSN)
	if err != nil {
		return err
	}
	db := sql.OpenDB(deadly{inner.Driver(), o, new(atomic.Int64)})
	conn, err := connection.New(redis.NewClient(&redis.Options{Addr: o.Redis}), connection.Config{Logger: quiet})
	if err != nil {
		return err
	}
	sys, err := wakebell.New(actor.NewActorSystem(actor.WithLoggerFactory(noLogs)), conn, wakebell.Config{})
	if err != nil {
		return err
	}
	if err := sys.Start(context.Background()); err != nil {
		return err
	}
	cfg := quick()
	cfg.BatchSize = 10
	if _, err := box.StartRelay(sys, db, cfg); err != nil {
		return err
	}
	<-time.After(patience)
	return errors.New("no statement killed the process")
}

// deadly connects to a database. It kills the process before a statement.
type deadly struct {
	inner driver.Driver
	order order
	seen  *atomic.Int64
}

func (d deadly) Driver() driver.Driver { return d.inner }

func (d deadly) Connect(context.Context) (driver.Conn, error) {
	conn, err := d.inner.Open(d.order.DSN)
	return deadlyConn{conn, d}, err
}

type deadlyConn struct {
	driver.Conn
	deadly deadly
}

func (c deadlyConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
}

func (c deadlyConn) Prepare(query string) (driver.Stmt, error) {
	if strings.HasPrefix(query, c.deadly.order.Statement) && c.deadly.seen.Add(1) == c.deadly.order.Nth {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	return c.Conn.Prepare(query)
}

// deliveries counts the deliveries of timers by body.
type deliveries struct {
	mu    sync.Mutex
	count map[string]int
}

func newDeliveries() *deliveries { return &deliveries{count: map[string]int{}} }

func (d *deliveries) handler(topic wakebell.Topic[string]) wakebell.Handler {
	return wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[string]) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.count[timer.Body]++
		return nil
	})
}

// require waits until all bodies were delivered, and fails if one was delivered twice.
func (d *deliveries) require(t testing.TB, bodies int) {
	t.Helper()
	require.Eventually(t, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.count) == bodies
	}, patience, 10*time.Millisecond, "every timer is delivered")
	d.mu.Lock()
	defer d.mu.Unlock()
	for body, n := range d.count {
		require.Equal(t, 1, n, "deliveries of %s", body)
	}
}

// Relay processes are killed before they claim, and between the write to Redis and the
// deletion of the rows. Nothing is lost and nothing has an effect twice.
func testKilledRelays(t *testing.T, w *world) {
	const rounds, perRound = 6, 25
	got := newDeliveries()
	sys := w.system(t, got.handler(w.topic))
	q := queue.New[string](redistest.Name(t))
	random := rand.New(rand.NewPCG(2, 3)) //nolint:gosec // a test
	for round := range rounds {
		for i := range perRound {
			name := fmt.Sprintf("%d-%d", round, i)
			w.commit(t, func(tx *sql.Tx) {
				require.NoError(t, w.box.Schedule(t.Context(), tx, w.topic.Draft(name)))
				require.NoError(t, w.box.Publish(t.Context(), tx, q.Draft(name)))
				require.NoError(t, w.box.Schedule(t.Context(), tx, w.topic.Draft("cancelled", wakebell.ID(name), wakebell.In(time.Hour))))
				require.NoError(t, w.box.Cancel(t.Context(), tx, w.topic.Name(), name))
			})
		}
		statement := []string{"DELETE FROM", "DELETE FROM", "SELECT seq"}[round%3]
		w.killedRelay(t, statement, 1+random.Int64N(3))
	}
	require.Positive(t, w.stats(t).Waiting, "the killed processes left rows")
	w.relay(t, sys, quick())
	w.awaitRelayed(t)
	got.require(t, rounds*perRound)
	require.Eventually(t, func() bool { return len(w.timers(t)) == 0 }, patience, 10*time.Millisecond)
	messages := map[string]int{}
	for m, err := range sys.Client().Queues().Messages(t.Context(), q.Keys(), false, wakebelltype.Page{}) {
		require.NoError(t, err)
		messages[string(m.Payload)]++
		require.Equal(t, 1, messages[string(m.Payload)], "messages %s", m.Payload)
	}
	require.Len(t, messages, rounds*perRound)
}

// killedRelay runs a relay process until it kills itself.
func (w *world) killedRelay(t testing.TB, statement string, nth int64) {
	t.Helper()
	text, err := json.Marshal(order{
		Dialect: w.server.dialect, Driver: w.server.driver, DSN: w.server.dsn, Table: w.box.Table(),
		Redis: redistest.SharedAddr(t), Statement: statement, Nth: nth,
	})
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this test binary
	cmd.Env = append(os.Environ(), orderVariable+"="+string(text))
	cmd.SysProcAttr = redistest.ChildAttr()
	out, err := cmd.CombinedOutput()
	exit, ok := errors.AsType[*exec.ExitError](err)
	require.True(t, ok, "%v: %s", err, out)
	status, ok := exit.Sys().(syscall.WaitStatus)
	require.True(t, ok)
	require.Equal(t, syscall.SIGKILL, status.Signal(), string(out))
}

// Rows that were relayed and come back, as from a backup, have no effect again, although
// Redis has forgotten the answers to publishes.
func testRestoredRows(t *testing.T, w *world) {
	got := newDeliveries()
	sys := w.system(t, got.handler(w.topic))
	q := queue.New[string](redistest.Name(t))
	w.commit(t, func(tx *sql.Tx) {
		require.NoError(t, w.box.Schedule(t.Context(), tx, w.topic.Draft("x", wakebell.ID("x"))))
		require.NoError(t, w.box.Publish(t.Context(), tx, q.Draft("m")))
	})
	const columns = "request_key, stream, kind, target, timer, body, created_at"
	copyRows := func(from, to string) {
		_, err := w.db.ExecContext(t.Context(), "INSERT INTO "+to+" ("+columns+") SELECT "+columns+" FROM "+from+" ORDER BY seq")
		require.NoError(t, err)
	}
	backup, err := outbox.New(nil, w.server.dialect, outbox.Config{Table: w.box.Table() + "_backup"})
	require.NoError(t, err)
	require.NoError(t, backup.Migrate(t.Context(), w.db))
	copyRows(w.box.Table(), backup.Table())
	relay := w.relay(t, sys, quick())
	w.awaitRelayed(t)
	got.require(t, 1)

	answers, err := w.rdb.Keys(t.Context(), q.Name()+"*published*").Result()
	require.NoError(t, err)
	for _, key := range answers {
		require.NoError(t, w.rdb.Del(t.Context(), key).Err())
	}
	copyRows(backup.Table(), w.box.Table())
	relay.Wake()
	require.Eventually(t, func() bool { return relay.Status().Relayed == 4 }, patience, 10*time.Millisecond)
	require.Empty(t, w.timers(t))
	stats, err := sys.Client().Queues().Stats(t.Context(), q.Keys())
	require.NoError(t, err)
	require.EqualValues(t, 1, stats.Pending)
	got.require(t, 1)
}
