//go:build unix

package sqltest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
)

var errInjected = errors.New("the connection was lost")

// failing is a database of which one call fails.
type failing struct {
	mu    sync.Mutex
	point string // of the call; empty: none fails
	then  func()
}

// strike returns an error if the call at this point has to fail.
func (f *failing) strike(point string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.point != point {
		return nil
	}
	f.point = ""
	f.then()
	return errInjected
}

// fail makes the next call at this point fail, and calls then at that time.
func (f *failing) fail(point string, then func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.point, f.then = point, then
}

type failingConnector struct {
	inner   driver.Driver
	dsn     string
	failing *failing
}

func (c failingConnector) Driver() driver.Driver { return c.inner }

func (c failingConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.inner.Open(c.dsn)
	return &failingConn{Conn: conn, failing: c.failing}, err
}

type failingConn struct {
	driver.Conn
	failing *failing
	parks   bool // the transaction has parked a lane
}

func (c *failingConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	c.parks = false
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
	return failingTx{tx, c}, err
}

type failingTx struct {
	driver.Tx
	conn *failingConn
}

func (t failingTx) Commit() error {
	if t.conn.parks {
		if err := t.conn.failing.strike("before commit"); err != nil {
			return errors.Join(err, t.Rollback())
		}
	}
	err := t.Tx.Commit()
	if t.conn.parks && err == nil {
		return t.conn.failing.strike("after commit")
	}
	return err
}

// Prepare is called for each statement, because the connection has no other way.
func (c *failingConn) Prepare(query string) (driver.Stmt, error) {
	stmt, err := c.Conn.Prepare(query)
	return failingStmt{stmt, query, c}, err
}

type failingStmt struct {
	driver.Stmt
	query string
	conn  *failingConn
}

func (s failingStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	point := ""
	switch table := strings.Trim(strings.TrimLeft(s.query, "INSERT INTO UPDATE"), "`\""); {
	case !strings.Contains(table[:min(len(table), 30)], "_parked"):
	case strings.HasPrefix(s.query, "INSERT"):
		point, s.conn.parks = "park", true
	case strings.Contains(s.query, "AND retry_at"):
		point = "lease"
	}
	if point != "" {
		if err := s.conn.failing.strike("before " + point); err != nil {
			return nil, err
		}
	}
	result, err := s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
	if point != "" && err == nil {
		err = s.conn.failing.strike("after " + point)
	}
	return result, err
}

func (s failingStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if lane, ok := args0(args); ok && lane < 0 && strings.HasPrefix(s.query, "SELECT seq, request_key") {
		if err := s.conn.failing.strike("before read"); err != nil {
			return nil, err
		}
	}
	return s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
}

func args0(args []driver.NamedValue) (int64, bool) {
	if len(args) == 0 {
		return 0, false
	}
	n, ok := args[0].Value.(int64)
	return n, ok
}

// A relay tries a parked lane again as soon as the database works, although the lane is leased for
// half an hour, also if it is unknown whether a statement had an effect.
func testLanesAfterErrors(t *testing.T, w *world) {
	inner := w.server.open(t)
	f := &failing{}
	observer := w.db
	relayed := sql.OpenDB(failingConnector{inner.Driver(), w.server.dsn, f})
	t.Cleanup(func() { require.NoError(t, relayed.Close()) })
	cfg := quick()
	cfg.Timeout = 10 * time.Minute
	w.db = relayed
	w.relay(t, w.system(t), cfg)
	w.db = observer
	key := "timers_timeline:" + w.topic.Name()
	for _, point := range []string{"before lease", "after lease", "before read", "before park", "after park", "before commit", "after commit"} {
		require.NoError(t, w.rdb.Set(t.Context(), key, "not a sorted set", 0).Err())
		w.schedule(t, point, wakebell.ID("x"), wakebell.In(time.Hour))
		w.schedule(t, "last "+point, wakebell.ID("x"), wakebell.In(time.Hour))
		require.Eventually(t, func() bool { return w.stats(t).Deferred == 2 }, patience, 10*time.Millisecond, point)
		f.fail(point, func() { w.rdb.Del(context.Background(), key) })
		require.Eventually(t, func() bool { return w.stats(t).Waiting == 0 }, patience, 10*time.Millisecond, point)
		require.Equal(t, map[string]string{"x": "last " + point}, w.timers(t))
	}
}
