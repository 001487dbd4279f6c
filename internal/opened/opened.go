// Package opened is the inside of a connection.Connection, for the packages of this
// module that make clients from one. A *connection.Connection is a *Handle by
// conversion, which only these packages can write, because they alone may import this
// one:
//
//	conn, err := opened.Of((*opened.Handle)(c))
package opened

import (
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	actorgates "github.com/wakebell/wakebell/actors/gates"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/metrics"
	"github.com/wakebell/wakebell/internal/outgoing"
	"github.com/wakebell/wakebell/internal/usercode"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/redisops"
	"github.com/wakebell/wakebell/redisops/audit"
	"github.com/wakebell/wakebell/redisops/gates"
	"github.com/wakebell/wakebell/redisops/replicas"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	// DefaultPayloadLimit is the default of Options.PayloadLimit, in bytes.
	DefaultPayloadLimit = 1 << 20

	maxPayloadLimit   = 512 << 20 // the most bytes of a Redis string
	maxScheduleWindow = time.Second
	maxMetricTopics   = 100_000
)

// Options are the fields of connection.Config, which describes them.
type Options struct {
	Keys               wakebelltype.Keys
	GateKeys           wakebelltype.GateKeys
	Prefix             string
	PayloadLimit       int
	RetryFor           time.Duration
	ReadFrom           redis.UniversalClient
	Celery             bool
	Zone               *time.Location
	ScheduleMiddleware []wakebelltype.ScheduleMiddleware
	Payloads           *payload.Chain
	TracerProvider     trace.TracerProvider
	Propagator         propagation.TextMapPropagator
	MeterProvider      metric.MeterProvider
	MetricTopics       int
	NoCounts           bool
	Audit              wakebelltype.AuditConfig
	Logger             *slog.Logger
}

// Switches change what users cannot: for tests, benchmarks and flags of the program. The
// zero value changes nothing.
type Switches struct {
	// NoCoalescing sends every schedule in a call of its own, and every script without
	// those of other topics. NoPayloadsApart reads payloads with the exchange that claims
	// them.
	NoCoalescing, NoPayloadsApart bool

	// ScheduleWindow is for how long a schedule waits for others of its topic, up to
	// 1 s; 0: automatic; negative: it does not wait.
	ScheduleWindow time.Duration

	// NoDivision makes a node poll its topics without regard to the other nodes.
	NoDivision bool

	// MetricShards measures each shard of a topic by itself.
	MetricShards bool

	// TraceAsChild makes the span of a delivery a child of the span that scheduled the
	// timer, in place of the beginning of a trace.
	TraceAsChild bool

	// Names are the base names of keys that users cannot change.
	Names timers.Names

	Gates  GateSwitches
	Outbox OutboxSwitches
}

// OutboxSwitches are the Switches of an outbox and its relays.
type OutboxSwitches struct {
	NoNotify        bool          // leaves out the NOTIFY of PostgreSQL
	MeasureInterval time.Duration // between two readings of the statistics; 0: the default
}

// GateSwitches are the Switches of Gates.
type GateSwitches struct {
	// SignalTTL is how long a turn that was granted to a waiting process waits for that
	// process to confirm it, before it goes to the next waiter, 50 ms to 1 min; 0:
	// 500 ms.
	SignalTTL time.Duration

	// PresenceTTL is how long a process without a heartbeat keeps its places in the
	// queues, 400 ms to 1 min; 0: 2 s. A heartbeat is sent every quarter of it.
	PresenceTTL time.Duration

	// Elsewhere says that turns are taken on another Redis, and that this one serves
	// Guard only. Guard does not know which tokens had a turn then, and accepts tokens up
	// to a day ahead of this Redis's clock.
	Elsewhere bool

	// Observe, if not nil, is called with every ticket that is taken.
	Observe func(actorgates.TicketTaken)
}

// Handle is a Conn in a type that shows nothing of it.
type Handle struct{ conn *Conn }

// Of returns the inside of a handle that has a Redis. The error wraps
// [wakebelltype.ErrInvalid].
func Of(h *Handle) (*Conn, error) {
	c, err := Any(h)
	if err == nil && c.Redis == nil {
		err = argument.Invalid("conn", "it has no Redis; make it with connection.New")
	}
	return c, err
}

// Any is Of for a handle that may have no Redis.
func Any(h *Handle) (*Conn, error) {
	if h == nil || h.conn == nil {
		return nil, argument.Invalid("conn", "nil or zero; make it with connection.New")
	}
	return h.conn, nil
}

// Default returns a connection without Redis and with the defaults, for a nil handle, or
// else Any.
func Default(h *Handle) (*Conn, error) {
	if h != nil {
		return Any(h)
	}
	local, err := WithoutRedis(Options{}, Switches{})
	if err != nil {
		return nil, err
	}
	return local.conn, nil
}

// Conn is what clients of one Redis share. Its fields are read only, and have their
// defaults.
type Conn struct {
	Options
	Switches

	Redis   redis.UniversalClient // nil: there is none
	Retry   redisops.Retry
	Metrics *metrics.Metrics // nil measures nothing
	Audit   *audit.Log       // nil without Redis
	Edge    *outgoing.Edge   // through which all goes that is stored; its Limit is PayloadLimit

	reads redis.UniversalClient // of listings and statistics; nil: Redis
}

// New makes a handle on rdb. It calls no Redis. The error wraps [wakebelltype.ErrInvalid] and
// joins all mistakes.
func New(rdb redis.UniversalClient, o Options, s Switches) (*Handle, error) {
	if rdb == nil {
		return nil, argument.Invalid("rdb", "nil; connection.WithoutRedis makes a connection for clients that need no Redis")
	}
	c, err := local(o, s)
	c.Redis = rdb
	return &Handle{c}, errors.Join(err, c.open())
}

// WithoutRedis makes a handle without Redis.
func WithoutRedis(o Options, s Switches) (*Handle, error) {
	c, err := local(o, s)
	return &Handle{c}, err
}

// local makes what needs no Redis. The Conn is valid without an error only.
func local(o Options, s Switches) (*Conn, error) {
	if o.PayloadLimit == 0 {
		o.PayloadLimit = DefaultPayloadLimit
	}
	o.Logger = usercode.Logger(o.Logger)
	err := errors.Join(
		argument.Within("PayloadLimit", o.PayloadLimit, 0, maxPayloadLimit),
		argument.Within("MetricTopics", o.MetricTopics, 0, maxMetricTopics),
		argument.Within("ScheduleWindow", max(s.ScheduleWindow, 0), 0, maxScheduleWindow),
		o.Payloads.Validate(),
	)
	middleware := o.ScheduleMiddleware
	if o.Payloads = o.Payloads.WithLimit(o.PayloadLimit); o.Payloads != nil {
		middleware = append(slices.Clip(middleware), o.Payloads.Encode)
	}
	edge, edgeErr := outgoing.New(middleware, o.TracerProvider, o.Propagator, o.PayloadLimit)
	return &Conn{
		Options: o, Switches: s, Retry: redisops.RetryFor(o.RetryFor), Edge: edge,
		Metrics: metrics.New(metrics.Options{Provider: o.MeterProvider, Topics: max(o.MetricTopics, 0), Shards: s.MetricShards}),
	}, errors.Join(err, edgeErr)
}

// open makes what needs Redis.
func (c *Conn) open() error {
	store, err := timers.New(c.Redis, c.Keys, c.Names)
	if err != nil {
		return err
	}
	if _, err := gates.NewKeyspace(c.GateKeys); err != nil {
		return err
	}
	if c.Audit, err = c.openAudit(c.Redis); err != nil {
		return err
	}
	if slices.Contains(store.Keys().Bases(), c.Audit.Key()) {
		return argument.Invalid("Audit.Key", "%q is the base name of other keys", c.Audit.Key())
	}
	if c.ReadFrom != nil {
		c.reads, err = replicas.Reader(c.ReadFrom, c.Redis)
	}
	return err
}

func (c *Conn) openAudit(rdb redis.UniversalClient) (*audit.Log, error) {
	l, err := audit.Open(rdb, c.Options.Audit, c.Logger)
	if err == nil {
		l.Retry = c.Retry
	}
	return l, err
}

// Timers returns a new store of timers, whose calls are retried.
func (c *Conn) Timers() (*timers.Timers, error) { return c.timers(c.Redis, c.Audit) }

// Untried returns a new store of timers whose calls are made once, for actors, which retry
// by themselves.
func (c *Conn) Untried() (*timers.Timers, error) {
	store, err := c.Timers()
	if err == nil {
		store.Retry, store.Audit = redisops.Retry{}, nil
	}
	return store, err
}

// Reader returns the store of listings and statistics that belongs to store: a new one on
// the replicas of ReadFrom, or else store.
func (c *Conn) Reader(store *timers.Timers) (*timers.Timers, error) {
	if c.reads == nil {
		return store, nil
	}
	audits, err := c.openAudit(c.reads)
	if err != nil {
		return nil, err
	}
	return c.timers(c.reads, audits)
}

func (c *Conn) timers(rdb redis.UniversalClient, audits *audit.Log) (*timers.Timers, error) {
	store, err := timers.New(rdb, c.Keys, c.Names)
	if err != nil {
		return nil, err
	}
	store.Logger, store.Retry, store.Metrics, store.Audit = c.Logger, c.Retry, c.Metrics, audits
	store.MaxPayload = max(timers.DefaultMaxPayload, c.PayloadLimit)
	store.NoCoalescing, store.NoPayloadsApart = c.NoCoalescing, c.NoPayloadsApart
	store.ScheduleWindow, store.NoCounts = c.ScheduleWindow, c.NoCounts
	return store, nil
}

// Gates returns the store of gates, and that of their listings.
func (c *Conn) Gates() (store, reads *gates.Store, err error) {
	if store, err = gates.New(c.Redis, c.GateKeys, c.Logger); err != nil || c.reads == nil {
		return store, store, err
	}
	reads, err = gates.New(c.reads, c.GateKeys, c.Logger)
	return store, reads, err
}

// Apart returns the Edge of calls that carry the context of their span beside the
// headers, and whose limits others check.
func (c *Conn) Apart() *outgoing.Edge {
	e := *c.Edge
	e.Apart, e.Limit = true, 0
	return &e
}
