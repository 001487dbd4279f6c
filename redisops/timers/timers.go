package timers

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

// DefaultMaxPayload is the most bytes of a payload that is read, unless
// MaxPayload says otherwise. While Redis copies a payload it answers no one else.
const DefaultMaxPayload = 16 << 20

// Timers is the store of timers on one Redis.
type Timers struct {
	// Logger takes what goes wrong beside an operation that succeeded. Set it
	// before use; nil discards.
	Logger *slog.Logger

	// MaxPayload is the most bytes of a payload that is read. A timer with more is
	// never copied: a claim makes it a dead letter without its payload, and Get
	// fails with [ErrTooLarge]. Set it before use; 0 means DefaultMaxPayload.
	MaxPayload int

	// PingEvery is how long the connection of Listen may be silent before it is
	// probed; 0 means 15 s. Set it before use.
	PingEvery time.Duration

	scripts.Runner
	keys    Keys
	gather  gatherer
	lookout lookout

	apartFrom       int
	transactionless atomic.Bool // the user may not use MULTI

	topics known

	mu     sync.Mutex
	shards []redis.ClusterSlot // as Check last found them; none: one server
}

// New gives the store that keeps its timers under keys; empty names take
// their defaults. The caller owns rdb.
func New(rdb redis.UniversalClient, keys Keys) (*Timers, error) {
	keys = keys.WithDefaults()
	if err := keys.Validate(); err != nil {
		return nil, err
	}
	if rdb == nil {
		return nil, fmt.Errorf("%w: rdb is nil", redisops.ErrInvalid)
	}
	return &Timers{
		Runner: scripts.Runner{RDB: rdb}, keys: keys, apartFrom: apartFrom,
		gather: gatherer{topics: map[string]*crowd{}},
	}, nil
}

// Keys are the names in use.
func (s *Timers) Keys() Keys { return s.keys }

func (s *Timers) maxPayload() int {
	if s.MaxPayload <= 0 {
		return DefaultMaxPayload
	}
	return s.MaxPayload
}

func (s *Timers) logger() *slog.Logger {
	if s.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Logger
}
