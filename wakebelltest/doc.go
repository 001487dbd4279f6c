// Package wakebelltest provides utilities for testing code that schedules or
// handles timers. Tests run in virtual time and need no Redis server.
//
// # Usage
//
// [Run] calls a test with a [World]: a Redis inside the process, and a node with
// the handlers of a Config. The test, or the code under test, schedules timers with
// [World.Client]. The test advances the clock with [World.Advance], and examines
// deliveries, pending timers and dead letters:
//
//	func TestAReminderIsSentAfterThreeDays(t *testing.T) {
//		cfg := wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(Invoices, remind)}}
//		wakebelltest.Run(t, cfg, func(t *testing.T, w *wakebelltest.World) {
//			billing.Start(t.Context(), w.Client(), invoice) // schedules
//
//			due := w.RequireUpcoming("invoices", "inv-42")
//			if due.In != 72*time.Hour { … }
//
//			w.Advance(72 * time.Hour) // runs all that is due on the way
//			delivery := w.RequireDelivered("invoices", "inv-42")
//			if delivery.Outcome != wakebelltest.Acked { … }
//		})
//	}
//
// The inner t belongs to the synctest bubble; do not use the outer one inside.
// Without Handlers there is no node, so a test can examine what its code schedules.
// A test of a handler alone needs no World: [Timer] returns a timer for it.
//
// # Time
//
// The World runs in a bubble of testing/synctest. The test, the handlers and Redis
// use the same clock, that of time.Now; it starts on 2000-01-01 UTC and advances
// when all goroutines of the bubble wait. A handler that sleeps for an hour returns
// when the test has advanced the clock by an hour. There is no jitter: a retry
// comes exactly after its backoff, and nodes claim nothing before it is due, which they
// otherwise do on a topic that delivers steadily.
//
// # Crashes
//
// As in production, the timers of a handler that panics or of a node that crashes
// are delivered again when their leases expire. [World.Crash] and [World.Restart]
// apply to all nodes. [World.Start] adds nodes, and the methods of [Node] apply to
// one. If a test fails, the history of its World is logged.
//
// # Limits
//
//   - The Redis is an emulation (miniredis). It has no persistence, no memory
//     limit, no ACLs and no Cluster.
//   - The clock stands still while a goroutine waits for something outside of the
//     bubble: a network, a process, or a channel made outside. Replace these by
//     fakes.
//   - All goroutines started in the World must end with it: a handler that ignores
//     the end of its context fails the test. After a crash of its node, a handler
//     runs until it returns, because a goroutine cannot be killed.
//   - Timers that the code under test writes to Redis itself, as a Python peer
//     does, notify no node. An idle node finds them within an hour: nodes poll less
//     often than their MaxPollingInterval, because each poll costs real time. A day
//     of an idle topic takes about 10 ms, a year a few seconds.
//   - t.Run, t.Parallel and t.Deadline cannot be called in a bubble; call Run in
//     subtests instead.
package wakebelltest
