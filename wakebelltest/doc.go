// Package wakebelltest tests code that schedules timers and code that handles
// them, in virtual time: no Redis, no sleeping.
//
// # Usage
//
// [Run] gives a test a [World]: a Redis inside the process, and a node with the
// handlers of its Config. The test schedules with [World.Client], or has its
// code do it, lets time pass with [World.Advance], and looks at what was
// delivered, what would be delivered when, and what is dead:
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
// The t inside is that of the bubble; use it, not the one outside. Without
// Handlers there is no node, and a test sees what its code schedules. A handler
// alone needs no world: [Timer] makes what it gets.
//
// # Time
//
// The world lives in a bubble of testing/synctest. Its clock is time.Now, for
// the test, for the handlers and for Redis alike; it begins on 2000-01-01 UTC
// and moves when everybody waits. A handler that sleeps for an hour ends when
// the test has advanced by one. Delays that are spread by chance outside are in
// the middle of their spread here, so that a retry comes when its backoff says.
//
// # Trouble
//
// A handler that panics leaves its timer to its lease, as outside, and so does
// a node that crashes: [World.Crash] and [World.Restart] are for all nodes,
// those of [Node] for one of several, which [World.Start] makes. A test that
// failed logs the history of its world.
//
// # Limits
//
//   - The Redis is an imitation (miniredis). It keeps nothing on disk, has no
//     memory limit, no rights and no Cluster.
//   - What waits for something outside of the bubble (a network, a process, a
//     channel made outside) keeps the clock still until it is done, and then the
//     world goes on at the same instant. Give such code fakes.
//   - All goroutines that begin in the world must end with it: a handler that
//     pays no heed to its context fails the test. After a crash it goes on until
//     it returns, for a goroutine cannot be killed.
//   - What code under test writes to Redis by itself, as a Python peer does,
//     sends no hint, and an idle node finds it within an hour: nodes look less
//     often than their MaxPollingInterval says, because each look costs real
//     time. A day of an idle topic takes a hundredth of a second, a year some
//     seconds.
//   - t.Run, t.Parallel and t.Deadline cannot be called in a bubble; call Run in
//     subtests instead.
package wakebelltest
