// Package redisops is the root of Wakebell's stores in Redis. It contains the time for
// which all stores retry calls while Redis is unavailable. The errors that their calls wrap
// are in package wakebelltype.
//
// The stores are the packages timers and shards (topics), joins and progress (ends and reports
// of timers), queue, gates, recurring and audit. Package transfer moves data between servers, replicas
// waits for replicas, and doctor examines a Redis. The Lua scripts of each package are in its
// folder lua. Only packages in this folder call Redis.
//
// The packages below redisops carry no promise of compatibility. Use package
// wakebell, which exports what an application needs of them.
//
// # Guarantees
//
// Every change is one Lua script. It is applied as a whole or, if Redis refuses it,
// not at all. Scripts check the types of all keys before they write, and all
// instants are read from Redis's clock.
package redisops
