package outbox

import (
	"context"
	"database/sql"
	"regexp"
	"strconv"
	"strings"

	"github.com/wakebell/wakebell/internal/argument"
)

// Dialect is the SQL of a database.
type Dialect uint8

// The dialects.
const (
	// PostgreSQL is for PostgreSQL 10 or newer.
	PostgreSQL Dialect = iota + 1
	// MySQL is for MySQL 8.0.1, MariaDB 10.6, or newer.
	MySQL
	// SQLite is for SQLite 3.8 or newer.
	SQLite
)

// dialect is what differs between the databases.
type dialect struct {
	name     string
	numbered bool   // placeholders are $1, $2 …, otherwise ?
	schemas  bool   // a table may be in another schema
	locks    bool   // a claim locks its rows
	maxName  int    // of a table, which is also part of the names of its indexes
	version  string // query
}

var dialects = [...]dialect{
	PostgreSQL: {name: "postgresql", numbered: true, schemas: true, locks: true, maxName: 48, version: "SHOW server_version"},
	MySQL:      {name: "mysql", schemas: true, locks: true, maxName: 48, version: "SELECT VERSION()"},
	SQLite:     {name: "sqlite", maxName: 48, version: "SELECT sqlite_version()"},
}

// String returns the name of the dialect.
func (d Dialect) String() string {
	if d == 0 || int(d) >= len(dialects) {
		return "unknown"
	}
	return dialects[d].name
}

// Execer runs a statement: a *sql.Tx, or the result of Pgx.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// DB runs statements and queries: a *sql.DB, *sql.Conn or *sql.Tx.
type DB interface {
	Execer
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Pgx returns a pgx.Tx, *pgx.Conn or *pgxpool.Pool as an Execer. The type parameter is
// inferred.
func Pgx[Tag any](tx interface {
	Exec(ctx context.Context, query string, args ...any) (Tag, error)
},
) Execer {
	return pgxExecer[Tag]{tx}
}

type pgxExecer[Tag any] struct {
	tx interface {
		Exec(ctx context.Context, query string, args ...any) (Tag, error)
	}
}

// ExecContext implements Execer. The result has no contents.
func (e pgxExecer[Tag]) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	_, err := e.tx.Exec(ctx, query, args...)
	return nil, err
}

var (
	identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	_          = [...]DB{(*sql.DB)(nil), (*sql.Conn)(nil), (*sql.Tx)(nil)}
)

// checkTable checks the name of a table, which is part of the statements.
func (d dialect) checkTable(table string) error {
	schema, name, qualified := strings.Cut(table, ".")
	if !qualified {
		schema, name = "", table
	}
	switch {
	case qualified && !d.schemas:
		return argument.Invalid("Table", "%s: %s has no schemas", argument.Quote(table), d.name)
	case qualified && !identifier.MatchString(schema), !identifier.MatchString(name):
		return argument.Invalid("Table", "%s, want letters, digits and underscores, without quotes", argument.Quote(table))
	case len(table) > d.maxName:
		return argument.Invalid("Table", "%d bytes, at most %d", len(table), d.maxName)
	}
	return nil
}

// sql returns a statement about the table. {table} is its name, {name} the name
// without schema, and each ? becomes a placeholder of the dialect.
func (o *Outbox) sql(text string) string {
	_, name, qualified := strings.Cut(o.table, ".")
	if !qualified {
		name = o.table
	}
	text = strings.NewReplacer("{table}", o.table, "{name}", name).Replace(text)
	if !o.dialect.numbered {
		return text
	}
	var b strings.Builder
	for n := 1; ; n++ {
		before, after, found := strings.Cut(text, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString("$" + strconv.Itoa(n))
		text = after
	}
}

// among returns a condition that a column has one of the values, and its arguments. The
// last value is repeated: the number of different statements stays small.
func among(column string, values []int64) (condition string, args []any) {
	n := 1
	for n < len(values) {
		n *= 2
	}
	args = make([]any, n)
	for i := range args {
		args[i] = values[min(i, len(values)-1)]
	}
	return column + " IN (?" + strings.Repeat(", ?", n-1) + ")", args
}
