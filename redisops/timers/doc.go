// Package timers is the stores in Redis: timers, and beside them queues
// ([Queue]), gates ([Gates]), recurring schedules ([Beat]), and the checks of a
// Redis ([Timers.Diagnose]).
//
// It carries no promise of compatibility: use package wakebell.
//
// # Usage
//
// [Timers] is the store. Its methods schedule, cancel and inspect the timers of
// a topic; [Timers.Source] gives the view that a poller works on, one
// [exchange.Request] at a time; [Timers.Listen] delivers hints that something
// may be due sooner than a poller knows.
//
// # Guarantees
//
// Every change is one Lua script. An exchange may be sent twice and runs once; a
// lease is fenced by its token.
//
// # Sharing keys
//
// The timeline and the payloads are shared with faststream-redis-timers, which
// writes them with plain commands. Payloads are opaque here. Whatever a peer
// left half done (an entry without payload, a payload without entry) is healed.
//
// # Concurrency
//
// All types may be used by several goroutines, except that at most one exchange
// of a stream may be in progress.
package timers
