// Package joins is the store of joins: timers that become due when other timers, their
// parts, have ended, or at their instants.
//
// It carries no promise of compatibility: use package wakebell.
//
// # State
//
// The state of a join is beside its timer, in keys and a slot of its own, so that parts may be
// in any topics, and no shard of a topic knows of joins: a hash, a zset of all parts in the
// order in which they were added, and a hash of how parts have ended. What is outstanding is
// the difference of the last two, so no count can be wrong.
//
// # Ends
//
// A part has its joins in a header. The node that settles it notes its end before the
// settlement, which is idempotent: the first end of a part stays. The call after which all
// parts of a closed join have ended runs its timer. An audit, which nodes make of joins in
// turn, finds what was not noted: parts that were cancelled, or handled by others, or whose
// nodes have crashed in between, and a join whose timer was not run.
package joins
