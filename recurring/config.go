package recurring

import (
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/wakebell/wakebell/internal/clientstore"
	"github.com/wakebell/wakebell/internal/firing"
	"github.com/wakebell/wakebell/internal/outgoing"
	schedulestore "github.com/wakebell/wakebell/redisops/recurring"
	"github.com/wakebell/wakebell/redisops/shards"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Config configures Schedules; the zero value works.
type Config struct {
	// Keys are the base names of the Redis keys.
	Keys wakebelltype.Keys

	// Prefix is put before the names of schedules and topics.
	Prefix string

	// PayloadLimit bounds the body of a run with its headers, in bytes; default
	// 1 MiB, at most 512 MiB.
	PayloadLimit int

	// Celery makes RunNow and Backfill send Celery messages for the entries that
	// Python processes stored, as SchedulerConfig.Celery does.
	Celery bool

	// Zone is the time zone of crontabs and relative intervals that name none.
	// Default UTC.
	Zone *time.Location

	// RetryFor is for how long a call is retried while Redis is unavailable.
	// 0, the default, means until the deadline of its context, or for 2 s without
	// one. Above 0 it bounds both. Negative: each call is made once.
	RetryFor time.Duration

	// ReadFrom is a client that reads from replicas, for Get, List and Names; see
	// wakebell.ClientConfig.
	ReadFrom redis.UniversalClient

	// NoCounts switches the counts of the runs of RunNow and Backfill in Redis off; see
	// wakebell.Client.Throughput.
	NoCounts bool

	// Audit configures the record of the operations Put, Delete, Pause, Resume, RunNow,
	// Backfill and Import; see wakebell.Client.Audit.
	Audit wakebelltype.AuditConfig

	// Logger receives what no caller receives; nil means slog.Default().
	Logger *slog.Logger

	// ScheduleMiddleware, TracerProvider and Propagator are the fields of
	// wakebell.ClientConfig. The middleware changes the body when a schedule is
	// put, and all runs have the changed one. Celery tasks pass unchanged.
	ScheduleMiddleware []wakebelltype.ScheduleMiddleware
	TracerProvider     trace.TracerProvider
	Propagator         propagation.TextMapPropagator
}

// New returns Schedules on rdb, which the caller owns and closes. It does not
// call Redis. Errors wrap wakebell.ErrInvalid.
func New(rdb redis.UniversalClient, cfg Config) (*Schedules, error) {
	common := clientstore.Config{
		Keys: cfg.Keys, PayloadLimit: cfg.PayloadLimit, RetryFor: cfg.RetryFor, Logger: cfg.Logger, Audit: cfg.Audit,
		NoCounts: cfg.NoCounts,
	}.WithDefaults()
	edge, err := outgoing.New(cfg.ScheduleMiddleware, cfg.TracerProvider, cfg.Propagator, 0)
	if err != nil {
		return nil, err
	}
	edge.Apart = true // the runs have spans of their own
	timers, err := clientstore.Open(rdb, common)
	if err != nil {
		return nil, err
	}
	store := schedulestore.New(shards.New(timers))
	manual := firing.Manual{Store: store, Zone: cfg.Zone, Maker: firing.Maker{
		Prefix: cfg.Prefix, Limit: common.PayloadLimit, Celery: cfg.Celery, Shares: store.Shares, Tracer: edge.Tracer,
	}}
	reads := manual
	if cfg.ReadFrom != nil {
		from, err := clientstore.OpenReader(cfg.ReadFrom, rdb, common)
		if err != nil {
			return nil, err
		}
		reads.Store = schedulestore.New(shards.New(from))
	}
	return &Schedules{store, edge, manual, reads, timers.Audit}, nil
}
