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
// Files by concept: schedule, batch, schedule_script, coalesce, apart, replicas, keyed
// (how timers are written), cancel (also reschedule and run now), source, reply, peek
// (what pollers send and receive), listen, tail (hints and events), inspect, stats,
// overview, topics (reading), dead, redrive (dead letters), control (pause and
// overrides), check (at the start), order (keys of
// timers), keys, scripts. Each script is in lua/.
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
