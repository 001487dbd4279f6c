package outbox

import (
	"cmp"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/tracing"
)

// Config configures an Outbox; the zero value works.
type Config struct {
	// Table is the name of the table, of up to 48 letters, digits and underscores;
	// with PostgreSQL and MySQL it may have a schema: "app.outbox". Default:
	// "wakebell_outbox".
	Table string

	// PayloadLimit bounds a request with its body and headers, in bytes, 1 to 16 MiB;
	// 0 means wakebell.DefaultPayloadLimit. The System of the relay needs at least
	// this limit.
	PayloadLimit int

	// NoNotify leaves out the NOTIFY that wakes relays on PostgreSQL when a
	// transaction commits. Commits that notify wait for each other, which thousands
	// of them per second would notice. The relays then find rows by polling.
	NoNotify bool

	// Propagator carries the span of a caller's context to the relay; nil means the
	// W3C Trace Context.
	Propagator propagation.TextMapPropagator
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

// New returns an Outbox. It does not use the database: Migrate creates the table. The
// error wraps wakebell.ErrInvalid.
func New(d Dialect, cfg Config) (*Outbox, error) {
	if d == 0 || int(d) >= len(dialects) {
		return nil, argument.Invalid("dialect", "unknown %d", d)
	}
	if err := argument.Within("PayloadLimit", cfg.PayloadLimit, 0, maxPayloadLimit); err != nil {
		return nil, err
	}
	o := &Outbox{
		kind: d, dialect: dialects[d], table: cmp.Or(cfg.Table, defaultTable),
		limit:  cmp.Or(cfg.PayloadLimit, wakebell.DefaultPayloadLimit),
		notify: d == PostgreSQL && !cfg.NoNotify,
		tracer: tracing.New(tracing.Config{Propagator: cfg.Propagator}),
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
