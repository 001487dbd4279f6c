package wakebelltype

// Keys are the base names of the Redis keys; see docs/keys.md. An empty name stands
// for its default: those of Timeline and Payloads are shared with
// faststream-redis-timers, that of Beat with RedBeat. The key of topic T is the base
// name, a colon and T; with HashTag, T is put in braces.
type Keys struct {
	Timeline  string // zset: id → instant; default "timers_timeline"
	Payloads  string // hash: id → payload; default "timers_payloads"
	Leases    string // hash: id → lease record; default "timers_leases"
	Dead      string // stream: dead letters; default "timers_dead"
	Exchange  string // string: last exchange of a stream of a poller; default "timers_exchange"
	Hint      string // string: outstanding hint; also the channel of hints; default "timers_hint"
	Flow      string // zset: state of the flow control of the topic, if it has any; default "timers_flow"
	TimerKeys string // hash: id → place and key of a timer with a key; default "timers_keys"
	KeyOrder  string // zset: timers of keys that have several, in their order; default "timers_order"
	KeyStates string // hash: key → the timers that hold it; default "timers_busy"
	KeyRates  string // zset: key → when all its tokens are back, with RateLimitByKey; default "timers_rates"
	Control   string // hash: pause and overrides of the topic; default "timers_control"
	Once      string // string: mark of a timer with Once; default "timers_once"
	Keyed     string // string: answer to a call with an idempotency key; default "timers_keyed"
	Events    string // channel: events; default "timers_events"
	Runs      string // hash: recurring schedule → last run scheduled, in a Cluster; default "timers_runs"
	Counts    string // hash: counts per minute and day; default "timers_counts"
	History   string // stream: attempts; default "timers_history"
	Nodes     string // zset: nodes that divide the topic → when their announcements expire; default "timers_nodes"
	Reports   string // hash: node → its state for the topic, see Overview.Reports; default "timers_reports"
	Topics    string // set: all topics, a single key; default "timers_topics"
	Queues    string // set: all queues, a single key; default "timers_queues"
	Shards    string // hash: topic with shards → its layout, a single key; default "timers_shards"
	Backlog   string // string: backlog of all topics as metrics last read it, a single key; default "timers_backlog"
	Beat      string // prefix of the keys of recurring schedules, divided on a Cluster unless it has a hash tag; default "redbeat:"

	// HashTag writes topics in braces, so that Redis Cluster keeps all keys of a
	// topic in one slot. A Python peer then uses "{T}" as its topic. With a
	// redis.ClusterClient, topics and queues whose names have no hash tag are written so
	// in any case, unless Timeline has one.
	HashTag bool
}
