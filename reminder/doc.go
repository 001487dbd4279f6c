// Package reminder provides durable timers for actors. A reminder delivers a
// protobuf message to the actor with a given name, or to an identity of a
// cluster. The message is delivered again until the recipient acknowledges it.
// Reminders outlive restarts of the actor, of the process and of Redis.
//
// An actor sets its reminders with [Set], [SetEvery] and [Forget], which do not
// wait for Redis. Everything else uses [Reminders], which wakebell.System returns.
// A node keeps reminders if wakebell.Config.Reminders is a [Config];
// docs/reminders.md describes them.
package reminder
