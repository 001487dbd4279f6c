package wakebelltype

import (
	"slices"
	"time"
)

// Stats are the statistics of a topic. Every timer is counted once: Total is the
// sum of Pending, Due, Leased, Retrying and Parked.
type Stats struct {
	Total    int64 `json:"total"`    // timers
	Pending  int64 `json:"pending"`  // not due yet, including timers that a Python peer handles
	Due      int64 `json:"due"`      // can be claimed now
	Leased   int64 `json:"leased"`   // leased by a Wakebell node: a handler has them, or they wait on it for one
	Retrying int64 `json:"retrying"` // waiting for their next attempt
	Parked   int64 `json:"parked"`   // due, and waiting for their key
	Dead     int64 `json:"dead"`     // dead letters

	// Estimated reports that Pending, Leased and Retrying are estimates from 1,000
	// lease records drawn at random, because there are more.
	Estimated bool `json:"estimated"`

	// OldestDue is the instant at which the first due timer became due; zero if
	// none is due.
	OldestDue time.Time `json:"oldest_due,omitzero"`
	// Lag is the time since OldestDue, by Redis's clock.
	Lag time.Duration `json:"lag_ns"`

	Paused   bool      `json:"paused"` // on all nodes; see Control
	PausedAt time.Time `json:"paused_at,omitzero"`
	// PausedUntil is when the pause ends by itself; zero: it does not.
	PausedUntil time.Time `json:"paused_until,omitzero"`
}

// Control holds the cluster-wide settings of a topic: whether it is paused, and
// Settings that override the options of the nodes. Redis stores it. The zero value
// means no pause and no overrides.
type Control struct {
	Paused   bool      `json:"paused"`             // nodes claim no timers of the topic; running handlers continue
	PausedAt time.Time `json:"paused_at,omitzero"` // by Redis's clock
	PausedBy string    `json:"paused_by"`
	Reason   string    `json:"reason"` // of the pause
	// PausedUntil is when the pause ends by itself, by Redis's clock; zero: it does not.
	PausedUntil time.Time `json:"paused_until,omitzero"`

	// Settings override the options of the nodes.
	Settings Settings `json:"settings"`
}

// Pause says who pauses a topic, why, and for how long. Without For and Until the pause
// lasts until it is resumed; at most one of them may be set.
type Pause struct {
	By, Reason string        // for people, at most 1,024 bytes each
	For        time.Duration // the pause ends by itself so long after its begin by Redis's clock; 0: not
	Until      time.Time     // the pause ends by itself at this instant of Redis's clock; zero: not
}

// Settings override the options of a topic's handlers on all nodes. A zero field
// leaves the option of the node in force.
type Settings struct {
	MaxConcurrent int `json:"max_concurrent"` // per node, 1 to 10,000

	LeaseTTL    time.Duration `json:"lease_ttl_ns"`     // 100 ms to 24 h
	MaxLeaseAge time.Duration `json:"max_lease_age_ns"` // 1 ms to 30 days; negative: off on every node

	PollingInterval    time.Duration `json:"polling_interval_ns"`     // 1 ms to 1 h
	MaxPollingInterval time.Duration `json:"max_polling_interval_ns"` // 1 ms to 1 h

	RetryInitial time.Duration `json:"retry_initial_ns"` // delay after the first failure, 1 ms to 30 days
	RetryLimit   time.Duration `json:"retry_limit_ns"`   // the cap up to which the delay doubles, 1 ms to 30 days
	MaxAttempts  int           `json:"max_attempts"`     // 1 to 1,000,000

	// RateLimit deliveries in RatePer, on all nodes together; after a pause up to
	// RateBurst at once.
	RateLimit int           `json:"rate_limit"`  // 1 to 1,000,000; negative: no limit on any node
	RatePer   time.Duration `json:"rate_per_ns"` // 1 ms to 30 days
	RateBurst int           `json:"rate_burst"`  // 1 to 1,000,000; negative: the same as RateLimit

	MaxInFlight int `json:"max_in_flight"` // leases on all nodes together, 1 to 1,000,000; negative: no maximum on any node

	PerKey int `json:"per_key"` // timers of a key at once, over all nodes, 1 to 10,000; negative: no limit

	// KeyRateLimit deliveries of each key in KeyRatePer, on all nodes together; after a
	// pause up to KeyRateBurst at once.
	KeyRateLimit int           `json:"key_rate_limit"`  // 1 to 1,000,000; negative: no limit on any node
	KeyRatePer   time.Duration `json:"key_rate_per_ns"` // 1 ms to 30 days
	KeyRateBurst int           `json:"key_rate_burst"`  // 1 to 1,000,000; negative: the same as KeyRateLimit

	// FairKeys timers of a key start in a turn, where PerKey or KeyRateLimit is in force.
	FairKeys int `json:"fair_keys"` // 1 to 100; negative: keys take no turns
}

// RecentFor is the time that Overview.Recent counts.
const RecentFor = 10 * time.Minute

// Overview is the statistics of a topic and its cluster-wide settings.
type Overview struct {
	Topic   string  `json:"topic"`
	Stats   Stats   `json:"stats"`
	Control Control `json:"control"`

	// Nodes is the number of processes that handle the topic, counted by their
	// subscriptions to its hints; -1 if the Redis user may not count them. Python
	// workers are not counted.
	Nodes int `json:"nodes"`

	// Shards is the number of shards of the topic, 1 to 256.
	Shards int `json:"shards"`

	// Division are the nodes among which the topic is divided, the primary first: each
	// as in Event.Node, a slash and a random part. Empty: it is not divided, the
	// Redis user may not read that, or the topic has shards, which are divided one by one.
	Division []string `json:"division"`

	// Reports are the states of the nodes that have a circuit breaker, adaptive concurrency,
	// a group, limits over all nodes, an Expiry or a handler that runs for long, sorted by node:
	// up to 30 s old, handlers about 20 s, a state of the breaker about a second. Other nodes report
	// nothing.
	Reports []NodeReport `json:"reports"`

	// Recent counts what was scheduled and handled within RecentFor, the present minute
	// included; see Client.Throughput. It is zero if the Redis user may not read that.
	Recent ThroughputCounts `json:"recent"`

	// Damage says what of the data of the topic was lost, as after a key was deleted by hand;
	// empty: nothing is known to be. Client.Repair shows what can be restored.
	Damage string `json:"damage"`

	// Err reports what could not be read; that part is zero. Causes are a key of
	// another type, or settings that were written by hand.
	Err error `json:"-"`
}

// Longest returns the handlers of all nodes that run for long, the longest first.
func (o Overview) Longest() (runs []NodeRun) {
	for _, r := range o.Reports {
		for _, run := range r.State.Longest {
			runs = append(runs, NodeRun{LongRun: run, Node: r.Node})
		}
	}
	slices.SortStableFunc(runs, func(a, b NodeRun) int { return a.Since.Compare(b.Since) })
	return runs
}

// Run returns the handler of a timer if it runs for long. A handler that lost its lease may
// still run while another has the timer: the one of the last attempt counts.
func (o Overview) Run(id string) (run NodeRun, found bool) {
	for _, r := range o.Longest() {
		if r.ID == id && (!found || r.Attempt > run.Attempt) {
			run, found = r, true
		}
	}
	return run, found
}

// ShardLayout is how the timers of a topic are divided into shards. All nodes and clients
// use the same one.
type ShardLayout struct {
	// Shards is the number of shards in which timers are stored, 1 to 256; 1: the topic is
	// not divided.
	Shards int `json:"shards"`
	// Next is the number of shards that a resharding has announced; 0: none.
	Next int `json:"next"`
	// Before is the number of shards before the last change; 0: it was not changed.
	Before int `json:"before"`
	// Moving reports that timers may still be where they were before.
	Moving bool `json:"moving"`
	// Since is when the last change began or ended, by Redis's clock; zero: never.
	Since time.Time `json:"since,omitzero"`
}

// Resharding is how far the move of the timers of a topic to another number of shards is.
type Resharding struct {
	Layout ShardLayout `json:"layout"`
	Moved  int64       `json:"moved"` // timers and dead letters, since the call
	Left   int64       `json:"left"`  // timers that are where they were before
	Done   bool        `json:"done"`
}

// TopicRemoval is the result of removing a topic from the list of topics.
type TopicRemoval struct {
	Existed bool // the topic was listed
	// Use is what uses the topic, which therefore stays: a key of it, or its nodes.
	// Empty: nothing uses it.
	Use string
}
