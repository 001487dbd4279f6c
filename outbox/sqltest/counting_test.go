//go:build unix

package sqltest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// counted is a database whose connections count what is read.
type counted struct {
	db     *sql.DB
	bodies atomic.Int64 // rows that claims read
}

// counting opens the database so that it counts.
func (s server) counting(t testing.TB) *counted {
	t.Helper()
	inner := s.open(t)
	c := &counted{}
	c.db = sql.OpenDB(countingConnector{inner.Driver(), s.dsn, c})
	t.Cleanup(func() { require.NoError(t, c.db.Close()) })
	return c
}

type countingConnector struct {
	inner   driver.Driver
	dsn     string
	counted *counted
}

func (c countingConnector) Driver() driver.Driver { return c.inner }

func (c countingConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.inner.Open(c.dsn)
	return countingConn{conn, c.counted}, err
}

type countingConn struct {
	driver.Conn
	counted *counted
}

func (c countingConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
}

// Prepare is called for each statement, because the connection has no other way.
func (c countingConn) Prepare(query string) (driver.Stmt, error) {
	stmt, err := c.Conn.Prepare(query)
	if err != nil || !strings.HasPrefix(query, "SELECT seq, request_key") {
		return stmt, err
	}
	return countingStmt{stmt, c.counted}, nil
}

type countingStmt struct {
	driver.Stmt
	counted *counted
}

func (s countingStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
	return countingRows{rows, s.counted}, err
}

type countingRows struct {
	driver.Rows
	counted *counted
}

func (r countingRows) Next(into []driver.Value) error {
	err := r.Rows.Next(into)
	if err == nil {
		r.counted.bodies.Add(1)
	}
	return err
}
