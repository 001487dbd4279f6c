// Package redisops is the root of the stores that Wakebell keeps in Redis. It
// has what all of them share: the errors that their calls wrap, and for how long
// a call is made again while Redis is unavailable.
//
// The stores are packages of their own: timers, queue, gates and recurring.
// Package doctor examines a Redis. Each has its Lua scripts in its folder lua.
// Only packages in this folder call Redis.
//
// The packages below redisops carry no promise of compatibility. Use package
// wakebell, which exports what an application needs of them.
//
// # Guarantees
//
// Every change is one Lua script: it happens as a whole or, where Redis refuses
// it, not at all. Scripts check the types of all keys before they write, and
// all instants are those of Redis's clock.
package redisops
