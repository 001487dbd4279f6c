// Package shards is the store of topics that may have shards. Each shard is a physical
// topic of package timers, with keys, scripts and a poller of its own; this package finds
// the shards of a call and joins their answers. For a topic without shards it passes the
// call on.
//
// The layouts of all topics with shards are one hash in Redis, with a version: see [Map].
// Its fields are topics, so the field "" is free for the version.
package shards
