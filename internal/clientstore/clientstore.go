// Package clientstore opens the Redis store of the public clients. It checks
// what their configurations have in common and fills in the defaults.
package clientstore

import (
	"log/slog"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/metrics"
	"github.com/wakebell/wakebell/internal/usercode"
	"github.com/wakebell/wakebell/redisops"
	"github.com/wakebell/wakebell/redisops/audit"
	"github.com/wakebell/wakebell/redisops/replicas"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// DefaultPayloadLimit is the default of Config.PayloadLimit, in bytes.
const DefaultPayloadLimit = 1 << 20

const (
	maxPayloadLimit   = 512 << 20 // the most bytes of a Redis string
	maxScheduleWindow = time.Second

	// defaultRetryFor is the time for a call whose context has no deadline.
	defaultRetryFor = 2 * time.Second
)

// Config is what the configurations of the clients have in common.
type Config struct {
	Keys         wakebelltype.Keys
	PayloadLimit int           // in bytes, 0 to 512 MiB; 0 means DefaultPayloadLimit
	RetryFor     time.Duration // 0: the context's deadline, or 2 s; negative: no retries
	Logger       *slog.Logger  // nil means slog.Default()

	Audit wakebelltype.AuditConfig

	NoCoalescing, NoPayloadsApart, NoCounts bool          // as in timers.Timers
	ScheduleWindow                          time.Duration // up to 1 s; 0: automatic; negative: none

	Metrics *metrics.Metrics // nil measures nothing
}

// WithDefaults returns the configuration with the defaults filled in.
func (c Config) WithDefaults() Config {
	if c.PayloadLimit == 0 {
		c.PayloadLimit = DefaultPayloadLimit
	}
	c.Logger = usercode.Logger(c.Logger)
	return c
}

func (c Config) retry() redisops.Retry {
	switch {
	case c.RetryFor < 0:
		return redisops.Retry{}
	case c.RetryFor == 0:
		return redisops.Retry{Otherwise: defaultRetryFor}
	default:
		return redisops.Retry{Otherwise: c.RetryFor, Most: c.RetryFor}
	}
}

// Open returns the store on rdb, without a call to Redis. Errors wrap
// redisops.ErrInvalid.
func Open(rdb redis.UniversalClient, cfg Config) (*timers.Timers, error) {
	cfg = cfg.WithDefaults()
	if rdb == nil {
		return nil, argument.Invalid("rdb", "nil")
	}
	if cfg.PayloadLimit < 0 || cfg.PayloadLimit > maxPayloadLimit {
		return nil, argument.Invalid("PayloadLimit", "%d is not within 0 and %d", cfg.PayloadLimit, maxPayloadLimit)
	}
	if cfg.ScheduleWindow > maxScheduleWindow {
		return nil, argument.Invalid("ScheduleWindow", "%v is more than %v", cfg.ScheduleWindow, maxScheduleWindow)
	}
	store, err := timers.New(rdb, cfg.Keys)
	if err != nil {
		return nil, err
	}
	store.Logger, store.Retry, store.Metrics = cfg.Logger, cfg.retry(), cfg.Metrics
	if store.Audit, err = OpenAudit(rdb, cfg.Audit, cfg.Logger, store.Retry); err != nil {
		return nil, err
	}
	if slices.Contains(store.Keys().Bases(), store.Audit.Key()) {
		return nil, argument.Invalid("Audit.Key", "%q is the base name of other keys", store.Audit.Key())
	}
	store.NoCoalescing, store.NoPayloadsApart, store.NoCounts = cfg.NoCoalescing, cfg.NoPayloadsApart, cfg.NoCounts
	store.ScheduleWindow = cfg.ScheduleWindow
	store.MaxPayload = max(timers.DefaultMaxPayload, cfg.PayloadLimit)
	return store, nil
}

// OpenReader returns the store of listings and statistics, which are read from replicas
// with from, and from the master with rdb where replicas cannot answer.
func OpenReader(from, rdb redis.UniversalClient, cfg Config) (*timers.Timers, error) {
	reader, err := replicas.Reader(from, rdb)
	if err != nil {
		return nil, err
	}
	return Open(reader, cfg)
}

// OpenAudit returns the audit on rdb, whose listings are retried.
func OpenAudit(rdb redis.UniversalClient, cfg wakebelltype.AuditConfig, log *slog.Logger, retry redisops.Retry) (*audit.Log, error) {
	l, err := audit.Open(rdb, cfg, log)
	if err != nil {
		return nil, err
	}
	l.Retry = retry
	return l, nil
}
