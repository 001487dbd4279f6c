package timers

import (
	"embed"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops"
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
	// fails with [redisops.ErrTooLarge]. Set it before use; 0 means
	// DefaultMaxPayload, 16 MiB.
	MaxPayload int

	// PingEvery is how long the connection of Listen may be silent before it is
	// probed; 0 means 15 s. Set it before use.
	PingEvery time.Duration

	// NoCoalescing switches coalesced calls off, see coalesce.go, and the pipelines
	// with scripts of several topics, see scripts.Batcher; NoPayloadsApart switches
	// payloads beside the scripts off, see apart.go and fetch.go. Set them before use.
	NoCoalescing    bool
	NoPayloadsApart bool

	// ScheduleWindow is how long a schedule waits for others of its topic; see
	// coalesce.go. Set it before use; 0 means automatic, negative that it does not wait.
	ScheduleWindow time.Duration

	// NoCounts switches the counts of scheduled timers and published messages off. Set
	// it before use.
	NoCounts bool

	// Audit records the operations of this store's owner, who calls it. nil records
	// nothing.
	Audit *audit.Log

	scripts.Runner
	keys   Keyspace
	gather coalescer
	peeker peeker

	apartFrom       int
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

// New returns the store that keeps its timers under keys; empty names take their
// defaults. The caller owns rdb and closes it.
func New(rdb redis.UniversalClient, keys wakebelltype.Keys) (*Timers, error) {
	keyspace, err := NewKeyspace(keys)
	if err != nil {
		return nil, err
	}
	if rdb == nil {
		return nil, fmt.Errorf("%w: rdb is nil", redisops.ErrInvalid)
	}
	s := &Timers{
		Runner: scripts.Runner{RDB: rdb, Batcher: scripts.NewBatcher()}, keys: keyspace, apartFrom: apartFrom,
		gather: coalescer{topics: map[string]*pendingSchedules{}},
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

// keyedExchange is the parts of an exchange whose timers have keys, but no limits.
var keyedExchange = []string{"mark", "keys", "hand_over", "limits_off", "flow", "keys_states", "keys_order", "flow_key_rate_off", "flow_keys", "due_keys", "due_keys_after", "packed", "replay", "acks"}

var (
	exchangeScript      = lua.Load("exchange", "mark", "flow_off", "packed", "replay", "acks")
	exchangeFlowScript  = lua.Variant("exchange", "mark", "limits", "flow_limits", "flow", "packed", "replay", "acks")
	exchangeKeysScript  = lua.Variant("exchange", keyedExchange...)
	scheduleScript      = lua.Fenced("schedule", "tally", "keys_off")
	scheduleKeysScript  = lua.FencedVariant("schedule", "tally", "keys", "keys_states", "keys_order", "keys_written")
	cancelScript        = lua.Fenced("cancel", "cancelled", "keys", "keys_states", "keys_order", "keys_written")
	cancelAllScript     = lua.Fenced("cancel_all", "cancelled")
	cancelledRunsScript = lua.Load("cancelled_runs")
	getScript           = lua.Load("get")
	rescheduleScript    = lua.Fenced("reschedule", "keys", "keys_states", "keys_order", "keys_written")
	runNowScript        = lua.Fenced("run_now", "keys", "keys_states", "keys_order", "keys_written")
	sweepKeysScript     = lua.Load("sweep_keys", "keys", "keys_states", "keys_order")
	listScript          = lua.Load("list")
	peekScript          = lua.Load("peek")
	deadScript          = lua.Load("dead", "letters")
	deleteDeadScript    = lua.Load("delete_dead", "letters")
	redriveScript       = lua.Fenced("redrive", "letters", "tally", "keys", "keys_states", "keys_order", "keys_written")
	healScript          = lua.Load("heal")
	controlScript       = lua.Load("control")
	announceScript      = lua.Load("announce")
	reportScript        = lua.Load("report")
	statsScript         = lua.Load("stats", "keys")
	lastDeadScript      = lua.Load("last_dead")
	apartScript         = lua.Bare("apart")
	dumpScript          = lua.Load("dump")
	putScript           = lua.Fenced("put", "keys", "keys_states", "keys_order", "keys_written")
	restoreScript       = lua.Fenced("restore", "keys", "keys_states", "keys_order", "keys_written")
	dropMissingScript   = lua.Fenced("drop_missing", "keys", "keys_states", "keys_order", "keys_written")
	removeTopicScript   = lua.Load("remove_topic")
	keyedScheduleScript = lua.FencedWithin("keyed", "schedule", "tally", "keys_off")
	keyedCancelScript   = lua.FencedWithin("keyed", "cancel", "cancelled", "keys", "keys_states", "keys_order", "keys_written")
	recallScript        = lua.Fenced("recall")

	exchangeBothScript      = lua.Variant("exchange", "mark", "limits", "flow_limits", "flow", "keys", "keys_states", "keys_order", "flow_key_rate_off", "flow_keys", "due_keys", "due_keys_after", "packed", "replay", "acks")
	exchangeRatesScript     = lua.Variant("exchange", "mark", "limits", "flow_limits", "flow", "keys", "keys_states", "keys_order", "flow_key_rate", "flow_keys", "due_keys", "due_keys_after", "packed", "replay", "acks")
	keyedScheduleKeysScript = lua.FencedWithin("keyed", "schedule", "tally", "keys", "keys_states", "keys_order", "keys_written")

	eachScheduleScript     = lua.FencedWithin("keyed_each", "schedule", "tally", "keys_off")
	eachScheduleKeysScript = lua.FencedWithin("keyed_each", "schedule", "tally", "keys", "keys_states", "keys_order", "keys_written")
	eachCancelScript       = lua.FencedWithin("keyed_each", "cancel", "cancelled", "keys", "keys_states", "keys_order", "keys_written")
)

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
