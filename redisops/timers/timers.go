// Package timers is the store of timers in Redis.
//
// It carries no promise of compatibility: use package wakebell.
//
// # Usage
//
// [Timers] is the store. Its methods schedule, cancel and inspect the timers of a
// topic. [Timers.Source] returns the source from which a poller claims leases, one
// [exchange.Request] at a time. [Timers.Listen] delivers hints that a timer may be
// due sooner than a poller expects.
//
// # Guarantees
//
// Every change is one Lua script. An exchange may be sent twice and runs once. A
// lease is fenced by its token.
//
// # Sharing keys
//
// The timeline and the payloads are shared with faststream-redis-timers, which
// writes them with plain commands. Payloads are opaque to this package. A due timer without
// a payload becomes a dead letter, and a payload without a timer is removed.
//
// # Concurrency
//
// All types may be used by several goroutines, except that at most one exchange of
// a stream may be in progress.
package timers

import (
	"embed"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops/audit"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// DefaultMaxPayload is the default of MaxPayload. While Redis copies a payload it
// serves no other client.
const DefaultMaxPayload = 16 << 20

// Timers is the store of timers on one Redis.
type Timers struct {
	// Logger receives problems beside an operation that succeeded. Set it before
	// use; nil discards them.
	Logger *slog.Logger

	// MaxPayload is the maximum payload that is read, in bytes. A larger payload is
	// never copied: a claim dead-letters its timer without the payload, and Get
	// fails with [wakebelltype.ErrTooLarge]. Set it before use; 0 means
	// DefaultMaxPayload, 16 MiB.
	MaxPayload int

	// PingEvery is how long the connection of Listen may be silent before it is
	// probed; 0 means 15 s. Set it before use.
	PingEvery time.Duration

	// NoCoalescing sends each schedule alone, see sender, and each script without those of
	// other topics, see scripts.Batcher; NoPayloadsApart switches payloads beside the
	// answers of exchanges off, see fetch.go. Set them before use.
	NoCoalescing    bool
	NoPayloadsApart bool

	// ScheduleWindow is how long a schedule waits for others of its topic; see
	// window. Set it before use; 0 means automatic, negative that it does not wait.
	ScheduleWindow time.Duration

	// NoCounts switches the counts of scheduled timers and published messages off. Set
	// it before use.
	NoCounts bool

	// Audit records the operations of this store's owner, who calls it. nil records
	// nothing.
	Audit *audit.Log

	scripts.Runner
	keys   Keyspace
	sender sender
	peeker peeker

	transactionless atomic.Bool // the user may not use MULTI
	uncounted       atomic.Bool // the user has no right to the counts of topics
	queuesUncounted atomic.Bool // nor to those of queues
	keyless         atomic.Bool // the user has no right to the keys of timers
	unfenced        atomic.Bool // nor to the layouts of physical topics
	unmarked        atomic.Bool // nor to the marks of cancelled runs

	topics, queues known
	hearing        scripts.Hearing // of hints

	mu     sync.Mutex
	shards []redis.ClusterSlot // as Check last found them; none: one server
}

// New returns the store that keeps its timers under keys, and under other names if there
// are some; empty names take their defaults. The caller owns rdb and closes it.
func New(rdb redis.UniversalClient, keys wakebelltype.Keys, others ...Names) (*Timers, error) {
	keyspace, err := NewKeyspace(keys, others...)
	if err != nil {
		return nil, err
	}
	if rdb == nil {
		return nil, fmt.Errorf("%w: rdb is nil", wakebelltype.ErrInvalid)
	}
	s := &Timers{
		Runner: scripts.Runner{RDB: rdb, Batcher: scripts.NewBatcher()}, keys: keyspace,
		sender: sender{topics: map[string]*line{}, servers: map[string]*outlet{}},
	}
	if s.OnCluster() {
		s.keys = keyspace.OnCluster()
	}
	if client, ok := rdb.(interface{ Options() *redis.Options }); ok {
		s.keys = s.keys.InDatabase(client.Options().DB)
	}
	return s, nil
}

// Keys returns the keyspace in use.
func (s *Timers) Keys() Keyspace { return s.keys }

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

//go:embed lua/*.lua
var luaFiles embed.FS

// Parts returns the files of the scripts, some of which are parts of scripts of other
// packages.
func Parts() embed.FS { return luaFiles }

// lua is the scripts of this package.
var lua = scripts.NewSet("timers", luaFiles)

var (
	exchangeScript      = lua.Load("exchange")
	exchangeFlowScript  = lua.Variant("exchange", "flow")
	exchangeKeysScript  = lua.Variant("exchange", "keys")
	scheduleScript      = lua.Load("schedule")
	scheduleKeysScript  = lua.Variant("schedule", "keys")
	cancelScript        = lua.Load("cancel")
	cancelAllScript     = lua.Load("cancel_all")
	cancelledRunsScript = lua.Load("cancelled_runs")
	getScript           = lua.Load("get")
	rescheduleScript    = lua.Load("reschedule")
	runNowScript        = lua.Load("run_now")
	swapScript          = lua.Load("swap")
	sweepKeysScript     = lua.Load("sweep_keys")
	listScript          = lua.Load("list")
	peekScript          = lua.Load("peek")
	deadScript          = lua.Load("dead")
	deleteDeadScript    = lua.Load("delete_dead")
	redriveScript       = lua.Load("redrive")
	healScript          = lua.Load("heal")
	controlScript       = lua.Load("control")
	announceScript      = lua.Load("announce")
	reportScript        = lua.Load("report")
	statsScript         = lua.Load("stats")
	lastDeadScript      = lua.Load("last_dead")
	dumpScript          = lua.Load("dump")
	putScript           = lua.Load("put")
	restoreScript       = lua.Load("restore")
	dropMissingScript   = lua.Load("drop_missing")
	removeTopicScript   = lua.Load("remove_topic")
	keyedScheduleScript = lua.Within("keyed", "schedule", "")
	keyedCancelScript   = lua.Within("keyed", "cancel", "")
	recallScript        = lua.Load("recall")

	exchangeBothScript      = lua.Variant("exchange", "both")
	exchangeRatesScript     = lua.Variant("exchange", "rates")
	exchangeFairScript      = lua.Composed("exchange", fairParts("both"))
	exchangeFairRatesScript = lua.Composed("exchange", fairParts("rates"))
	sweepFairScript         = lua.Composed("sweep_keys", append(lua.PartsOf("sweep_keys", ""), "one_turn"))
	keyedScheduleKeysScript = lua.Within("keyed", "schedule", "keys")

	eachScheduleScript     = lua.Within("keyed_each", "schedule", "")
	eachScheduleKeysScript = lua.Within("keyed_each", "schedule", "keys")
	eachCancelScript       = lua.Within("keyed_each", "cancel", "")
)

// fairParts returns the parts of a variant of the exchange for topics with FairKeys. The files of
// the variant stay as they are, so other topics load the same scripts.
func fairParts(variant string) (parts []string) {
	for _, part := range lua.PartsOf("exchange", variant) {
		parts = append(parts, part)
		switch part {
		case "keys_order":
			parts = append(parts, "fair_wake")
		case "due_keys_after":
			parts = append(parts, "fair_turns", "due_fair")
		}
	}
	return parts
}

// keyedScripts are the scripts for calls with an idempotency key, which store one answer,
// and eachScripts those that store an answer for each item.
var (
	keyedScripts = map[*redis.Script]*redis.Script{
		scheduleScript: keyedScheduleScript, scheduleKeysScript: keyedScheduleKeysScript, cancelScript: keyedCancelScript,
	}
	eachScripts = map[*redis.Script]*redis.Script{
		scheduleScript: eachScheduleScript, scheduleKeysScript: eachScheduleKeysScript, cancelScript: eachCancelScript,
	}
)
