// Package redisops keeps timers in Redis. It is the only package that speaks
// Redis.
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
// Every change is one Lua script: it happens as a whole or, where Redis refuses
// it, not at all. Scripts check the types of all keys before they write, and
// all instants are those of Redis's clock. An exchange may be sent twice and
// runs once; a lease is fenced by its token.
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
// of a stream may be under way.
package redisops
