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
	// SQLite is for SQLite 3.24 or newer.
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
	quote    string // around an identifier
	hints    bool   // statements name their index
	before   string // condition and order of the rows e before a row o in its stream; not with hints
	planning string // statement that makes the queries of a transaction use indexes in their order
	folds    bool   // names without quotes are in lower case
	replace  string // makes the insertion of a parked lane replace it
	letters  letters
}

const onConflict = " ON CONFLICT (lane) DO UPDATE SET retry_at = excluded.retry_at, attempts = excluded.attempts, outage = excluded.outage, error = excluded.error"

// useIndexes is for PostgreSQL, which has no hints. It estimates the rows with a retry_at
// from statistics, which are missing or older than the last change of many rows. If it
// expects few, it reads all of them through a bitmap, and sorts them, for each claim.
const useIndexes = "SELECT set_config('enable_bitmapscan', 'off', true), set_config('enable_seqscan', 'off', true)"

var dialects = [...]dialect{
	PostgreSQL: {
		name: "postgresql", numbered: true, schemas: true, locks: true, maxName: 48, version: "SHOW server_version",
		quote: `"`, folds: true, replace: onConflict, planning: useIndexes, letters: byEncoding,
		// The order is one that the primary key does not have. PostgreSQL otherwise reads
		// back through it if it expects the stream to have many of the rows.
		before: "(e.stream, e.seq) < (o.stream, o.seq) AND e.stream >= o.stream ORDER BY e.stream DESC, e.seq DESC",
	},
	MySQL: {
		name: "mysql", schemas: true, locks: true, maxName: 48, version: "SELECT VERSION()", quote: "`", hints: true, letters: inHex,
		replace: " ON DUPLICATE KEY UPDATE retry_at = VALUES(retry_at), attempts = VALUES(attempts), outage = VALUES(outage), error = VALUES(error)",
	},
	SQLite: {
		name: "sqlite", maxName: 48, version: "SELECT sqlite_version()", quote: `"`, replace: onConflict, letters: plain,
		before: "e.stream = o.stream AND e.seq < o.seq ORDER BY e.seq DESC",
	},
}

// at returns the condition that retry_at has one value, and its arguments. It is a range,
// because PostgreSQL might otherwise read the table in the order of its primary key, with
// all rows that do not match; not with hints, because MySQL reads the whole of a range to
// sort it.
func (d dialect) at(value string, args ...any) (string, []any) {
	if d.hints {
		return "retry_at = " + value, args
	}
	return "retry_at BETWEEN " + value + " AND " + value, append(args, args...)
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
	case d.name == dialects[SQLite].name && strings.HasPrefix(strings.ToLower(name), "sqlite_"):
		return argument.Invalid("Table", "%s: SQLite reserves names that begin with sqlite_", argument.Quote(table))
	case d.name == dialects[PostgreSQL].name && strings.HasPrefix(strings.ToLower(schema), "pg_"):
		return argument.Invalid("Table", "%s: PostgreSQL reserves schemas that begin with pg_", argument.Quote(table))
	case len(table) > d.maxName:
		return argument.Invalid("Table", "%d bytes, at most %d", len(table), d.maxName)
	}
	return nil
}

// quoted returns a name of the schema of the table, in quotes, so that it may be a
// reserved word. It is the name that the database would read without quotes.
func (o *Outbox) quoted(name string) string {
	if schema := o.schema(); schema != "" {
		name = schema + o.dialect.quote + "." + o.dialect.quote + name
	}
	if o.dialect.folds {
		name = strings.ToLower(name)
	}
	return o.dialect.quote + name + o.dialect.quote
}

func (o *Outbox) schema() string {
	schema, _, qualified := strings.Cut(o.table, ".")
	if !qualified {
		return ""
	}
	return schema
}

// sql returns a statement about the table. {table}, {parked} and {migrations} are the
// quoted names of the tables, {name} is the name of the table without schema and quotes,
// and each ? becomes a placeholder of the dialect. {by ready} and {by stream} name an
// index, because MySQL reads the table in the order of its primary key if it estimates
// that most rows match, and so reads all that do not.
func (o *Outbox) sql(text string) string {
	name := strings.TrimPrefix(o.table, o.schema()+".")
	byReady, byStream := "", ""
	if o.dialect.hints {
		byReady, byStream = "FORCE INDEX ("+name+"_ready)", "FORCE INDEX ("+name+"_order)"
	}
	text = strings.NewReplacer(
		"{table}", o.quoted(name), "{parked}", o.quoted(name+"_parked"), "{migrations}", o.quoted(name+"_migrations"),
		"{by ready}", byReady, "{by stream}", byStream, "{waiting}", o.quoted(name+"_waiting"), "{channel}", o.table, "{schema}", o.schema(), "{name}", name,
	).Replace(text)
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
func among[T any](column string, values []T) (condition string, args []any) {
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
