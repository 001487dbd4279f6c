package wakebelltype

// MaxName is the maximum length of an id or a topic, in bytes.
const MaxName = 512

// Keys are the base names of the Redis keys that Python processes share; see docs/keys.md,
// which has the fixed names of all others. An empty name stands for its default: those of
// Timeline and Payloads are shared with faststream-redis-timers, that of Beat with RedBeat. The key of topic T is the base
// name, a colon and T; with HashTag, T is put in braces.
type Keys struct {
	Timeline string // zset: id → instant; default "timers_timeline"
	Payloads string // hash: id → payload; default "timers_payloads"
	Beat     string // prefix of the keys of recurring schedules, divided on a Cluster unless it has a hash tag; default "redbeat:"

	// HashTag writes topics in braces, so that Redis Cluster keeps all keys of a
	// topic in one slot. A Python peer then uses "{T}" as its topic. With a
	// redis.ClusterClient, topics and queues whose names have no hash tag are written so
	// in any case, unless Timeline has one.
	HashTag bool
}
