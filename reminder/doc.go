// Package reminder provides durable timers for actors. A reminder delivers a
// protobuf message to the actor with a given name, or to an identity of a
// cluster, and repeats it until the recipient acknowledges it. Restarts of the
// actor, the process or Redis do not lose it.
//
// An actor sets its reminders with [Set], [SetEvery] and [Forget], which do not
// wait for Redis. Everything else uses [Reminders], which wakebell.System returns.
// A node keeps reminders if wakebell.Config.Reminders is a [Config];
// docs/reminders.md describes them.
package reminder
