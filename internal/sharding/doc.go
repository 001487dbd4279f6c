// Package sharding divides topics into shards: it has the names of shards, the hash that
// gives a timer its shard, and the stored layout of a topic. It uses neither Redis nor a
// clock.
//
// A shard is a physical topic: it has all keys that a topic without shards has, under a
// name of its own. Shard k of n of the topic "orders" is the physical topic
// "orders~n~k". A topic without shards is its own only physical topic.
package sharding
