package outbox

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/actors/relay"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/metrics"
	"github.com/wakebell/wakebell/internal/opened"
)

// RelayConfig configures a Relay; the zero value works.
type RelayConfig struct {
	// Listen calls wake whenever rows were written, until ctx ends; when it fails, it
	// is called again. PgxListen makes one for PostgreSQL. Nil: the relay finds rows
	// by polling, and by calls of Wake.
	Listen func(ctx context.Context, wake func()) error

	// BatchSize is how many rows are relayed in one transaction, 1 to 500; 0 means
	// 100.
	BatchSize int

	// PollInterval is the time between two looks for rows while none waits, 10 ms to
	// 1 min; 0 means 1 s.
	PollInterval time.Duration

	// Timeout bounds the sending of a batch to Redis, 100 ms to 10 min; 0 means 10 s.
	// A transaction is open for at most three times as long.
	Timeout time.Duration
}

// maxBatch is the maximum of RelayConfig.BatchSize.
const maxBatch = 500

// measureInterval is the time between two readings of Stats.
const measureInterval = 5 * time.Second

func (c RelayConfig) withDefaults() (RelayConfig, error) {
	c.BatchSize = cmp.Or(c.BatchSize, 100)
	c.PollInterval = cmp.Or(c.PollInterval, time.Second)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	if err := argument.Within("BatchSize", c.BatchSize, 1, maxBatch); err != nil {
		return c, err
	}
	if err := argument.Within("PollInterval", c.PollInterval, 10*time.Millisecond, time.Minute); err != nil {
		return c, err
	}
	return c, argument.Within("Timeout", c.Timeout, 100*time.Millisecond, 10*time.Minute)
}

// Relay is an actor that sends the rows of an outbox to the gateway of a System, and
// deletes those that Redis has. Any number of relays may share an outbox.
type Relay struct {
	relay *relay.Relay
	stats *latest
	end   func() // of the metrics
}

// latest are the last Stats.
type latest struct {
	mu     sync.Mutex
	stats  Stats
	at     time.Time
	outage error // of a lane that Redis did not answer; nil: there is none
}

// measure reads the Stats.
func (s *store) measure(ctx context.Context) error {
	now := s.now()
	stats, err := s.Stats(ctx, s.db)
	if err != nil {
		return err
	}
	var reason string
	const out = "SELECT COALESCE(MIN(error), '') FROM (SELECT error FROM {parked} WHERE outage = 1 LIMIT ?) o"
	if err := s.scan(ctx, s.db, out, []any{maxCount}, &reason); err != nil {
		return err
	}
	s.stats.mu.Lock()
	defer s.stats.mu.Unlock()
	s.stats.stats, s.stats.at, s.stats.outage = stats, now, nil
	if reason != "" {
		s.stats.outage = errors.New(reason)
	}
	return nil
}

// StartRelay starts an actor in the ActorSystem of sys that relays the rows of the
// outbox to sys, which should be started, and logs and measures as its Connection says. The caller owns db, and stops the Relay
// before sys and db. An ActorSystem has one relay for each table. The relay uses up to
// three connections of db. A program on pgx makes a *sql.DB with its package stdlib.
func (o *Outbox) StartRelay(sys *wakebell.System, db *sql.DB, cfg RelayConfig) (*Relay, error) {
	switch {
	case sys == nil:
		return nil, argument.Invalid("sys", "nil")
	case db == nil:
		return nil, argument.Invalid("db", "nil")
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	on, err := opened.Any((*opened.Handle)(sys.Connection()))
	if err != nil {
		return nil, err
	}
	stats := &latest{}
	table := &store{Outbox: o, db: db, batch: cfg.BatchSize, lease: 3 * cfg.Timeout, stats: stats}
	started, err := relay.Start(sys.ActorSystem(), relay.Config{
		Name: "wakebell-outbox-" + o.table, Gateway: sys.Gateway(),
		Ready: ready{table}, Parked: parked{table, new(bool), &laneLeases{}}, Measure: table.measure,
		Listen: cfg.Listen, Logger: on.Logger,
		PollInterval: cfg.PollInterval, MeasureInterval: cmp.Or(on.Outbox.MeasureInterval, measureInterval), Timeout: cfg.Timeout,
	})
	if err != nil {
		return nil, err
	}
	r := &Relay{relay: started, stats: stats}
	r.end = on.Metrics.ObserveOutbox(o.table, r.reading)
	return r, nil
}

// Wake makes the relay look for rows now. A program without Listen calls it after a
// commit.
func (r *Relay) Wake() { r.relay.Wake() }

// Stop lets the batch in flight end until ctx is done, and stops the relay. Rows that
// were not relayed stay in the outbox. After an error, a row may be relayed that is
// still in the outbox; the next relay sends it again, without effect.
func (r *Relay) Stop(ctx context.Context) error {
	defer r.end()
	return r.relay.Stop(ctx)
}

// reading returns the Status for the metrics.
func (r *Relay) reading() metrics.Outbox {
	s := r.Status()
	return metrics.Outbox{
		Measured: !s.Measured.IsZero(), Waiting: s.Stats.Waiting, Failed: s.Stats.Failed, Lag: s.Stats.Lag,
		Relayed: s.Relayed, Deferred: s.Deferred, Rejected: s.Rejected,
	}
}

// Status is what a Relay does.
type Status struct {
	// Stats are those of the instant Measured, which is zero before the first reading.
	// They are read every 5 s; if they are older than 15 s, the database does not
	// answer.
	Stats    Stats     `json:"stats"`
	Measured time.Time `json:"measured"`

	// What this relay has done since its start: rows that Redis has, refusals that
	// are retried, and rows that were set aside.
	Relayed  int64 `json:"relayed"`
	Deferred int64 `json:"deferred"`
	Rejected int64 `json:"rejected"`

	// Err is why the last batch failed, or why Redis does not take the rows of a topic
	// or queue, as of Measured; nil: neither is so. The relay retries with a backoff of
	// up to 5 s. Refusals such as a full queue are no failures: see Stats.Deferred.
	Err error `json:"-"`
}

// Status returns what the relay does, without a call of the database.
func (r *Relay) Status() Status {
	counts := r.relay.Counts()
	s := Status{Relayed: counts.Relayed, Deferred: counts.Deferred, Rejected: counts.Rejected, Err: r.relay.Err()}
	r.stats.mu.Lock()
	defer r.stats.mu.Unlock()
	s.Stats, s.Measured = r.stats.stats, r.stats.at
	if s.Err == nil {
		s.Err = r.stats.outage
	}
	if s.Stats.Waiting > 0 && s.Err != nil {
		s.Stats.Lag += time.Since(s.Measured) // grows while the database is away, too
	}
	return s
}
