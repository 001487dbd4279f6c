package gate

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric"

	actorgates "github.com/wakebell/wakebell/actors/gates"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/metrics"
	"github.com/wakebell/wakebell/internal/usercode"
	terms "github.com/wakebell/wakebell/messages/gate"
	"github.com/wakebell/wakebell/redisops/gates"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Config configures Gates. The zero value is valid. All processes that
// share gates should have the same configuration.
type Config struct {
	// Keys are the base names of the Redis keys.
	Keys wakebelltype.GateKeys

	// LeaseTTL is how long a turn is held after its process died, 300 ms to
	// 24 h; default 10 s. While the process lives, the turn is extended every
	// third of LeaseTTL. redis-fifo-lock calls it claim idle.
	LeaseTTL time.Duration

	// SignalTTL is how long a turn that was granted to a waiting process waits
	// for that process to confirm it, before it goes to the next waiter, 50 ms
	// to 1 min; default 500 ms.
	SignalTTL time.Duration

	// PresenceTTL is how long a process without a heartbeat keeps its places in
	// the queues, 400 ms to 1 min; default 2 s. A heartbeat is sent every
	// quarter of it, one for all gates of the process.
	PresenceTTL time.Duration

	// GuardsElsewhere says that turns are taken on another Redis, and that this
	// one serves Guard only: the guard then survives a loss of the other Redis.
	// Guard does not know which tokens had a turn, and accepts tokens up to a
	// day ahead of this Redis's clock.
	GuardsElsewhere bool

	// ReadFrom is a client that reads from replicas, for Show and List; see
	// wakebell.ClientConfig. The Gates of a System use that of the System.
	ReadFrom redis.UniversalClient

	// Audit configures the record of the operations ForceRelease, Repair and Remove; see
	// wakebell.Client.Audit. The user of Redis needs a right to its key.
	Audit wakebelltype.AuditConfig

	// MeterProvider makes the instruments of docs/metrics.md; nil means the global
	// provider of OpenTelemetry. The Gates of a System use that of the System.
	MeterProvider metric.MeterProvider

	// Logger; nil means slog.Default().
	Logger *slog.Logger

	observe func(actorgates.TicketTaken) // set by tests
}

func (c Config) withDefaults() Config {
	if c.LeaseTTL == 0 {
		c.LeaseTTL = 10 * time.Second
	}
	if c.SignalTTL == 0 {
		c.SignalTTL = 500 * time.Millisecond
	}
	if c.PresenceTTL == 0 {
		c.PresenceTTL = 2 * time.Second
	}
	c.Logger = usercode.Logger(c.Logger)
	return c
}

func (c Config) validate() error {
	return errors.Join(
		argument.Within("LeaseTTL", c.LeaseTTL, 300*time.Millisecond, 24*time.Hour),
		argument.Within("SignalTTL", c.SignalTTL, 50*time.Millisecond, time.Minute),
		argument.Within("PresenceTTL", c.PresenceTTL, 400*time.Millisecond, time.Minute),
	)
}

func (c Config) terms() terms.Terms {
	return terms.Terms{Lease: c.LeaseTTL, Signal: c.SignalTTL, Presence: c.PresenceTTL}
}

// actor returns the configuration of the actor.
func (c Config) actor(store *gates.Store) actorgates.Config {
	return actorgates.Config{
		Store: store, Terms: c.terms(), Logger: c.Logger, Process: processName, Observe: c.observe,
		Holds:   store,
		Metrics: metrics.New(metrics.Options{Provider: c.MeterProvider}),
	}
}

// processName identifies a waiting process to operators: the host, the process
// id, and a random part that differs between its incarnations.
func processName() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	host = strings.NewReplacer("#", "_", "\n", "_").Replace(host)
	return fmt.Sprintf("%s:%d:%s", host, os.Getpid(), uuid.NewString()[:8])
}
