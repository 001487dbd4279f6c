package outbox

import (
	"cmp"
	"time"

	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/opened"
	"github.com/wakebell/wakebell/internal/tracing"
)

// Config configures an Outbox; the zero value works.
type Config struct {
	// Table is the name of the table, of up to 48 letters, digits and underscores;
	// with PostgreSQL and MySQL it may have a schema: "app.outbox". Default:
	// "wakebell_outbox".
	Table string
}

const (
	defaultTable    = "wakebell_outbox"
	maxPayloadLimit = 16 << 20
)

// Outbox writes requests into a table. It is safe for concurrent use, starts nothing
// and needs no Close.
type Outbox struct {
	kind    Dialect
	dialect dialect
	table   string
	limit   int
	notify  bool
	tracer  *tracing.Tracer
	now     func() time.Time
}

// New returns an Outbox, whose requests have the PayloadLimit and the Propagator of conn,
// which may be nil for the defaults, and needs no Redis. The System of the relay needs at
// least this limit, and no more than 16 MiB are permitted. New does not use the database:
// Migrate creates the table. The error wraps wakebell.ErrInvalid.
func New(conn *connection.Connection, d Dialect, cfg Config) (*Outbox, error) {
	if d == 0 || int(d) >= len(dialects) {
		return nil, argument.Invalid("dialect", "unknown %d", d)
	}
	on, err := opened.Default((*opened.Handle)(conn))
	if err != nil {
		return nil, err
	}
	if err := argument.Within("PayloadLimit", on.PayloadLimit, 0, maxPayloadLimit); err != nil {
		return nil, err
	}
	o := &Outbox{
		kind: d, dialect: dialects[d], table: cmp.Or(cfg.Table, defaultTable),
		limit:  on.PayloadLimit,
		notify: d == PostgreSQL && !on.Outbox.NoNotify,
		tracer: tracing.New(tracing.Config{Propagator: on.Propagator}),
		now:    time.Now,
	}
	return o, o.dialect.checkTable(o.table)
}

// Table returns the name of the table. On PostgreSQL the channel of NOTIFY has the same
// name.
func (o *Outbox) Table() string { return o.table }

// micros and instant convert between instants and the columns of the table.
func micros(t time.Time) int64 { return t.UnixMicro() }

func instant(micros int64) time.Time { return time.UnixMicro(micros) }
