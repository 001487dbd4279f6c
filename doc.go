// Package wakebell delivers durable timers to actors. A timer is a message
// that is delivered to a handler at or after a given instant, at least once,
// also when processes crash. Redis stores the timers, protoactor-go actors
// deliver them.
//
// # Usage
//
// A [Topic] names a kind of timer and the type of its bodies. A [Client]
// schedules, cancels and inspects timers; a [System] calls the handlers. Both are made
// from a connection, which package connection configures:
//
//	var Invoices = wakebell.NewTopic[Invoice]("invoices")
//
//	conn, err := connection.New(rdb, connection.Config{})
//	sys, err := wakebell.New(actorSystem, conn, wakebell.Config{Handlers: []wakebell.Handler{
//		wakebell.Handle(Invoices, charge, wakebell.MaxConcurrent(20)),
//	}})
//	err = sys.Run(ctx) // until ctx ends, then drains
//
//	c, err := wakebell.NewClient(conn)
//	id, err := Invoices.Schedule(ctx, c, inv, wakebell.In(72*time.Hour), wakebell.ID("inv-42"))
//
// [Client.Schedules] stores recurring schedules. A System fires them if its
// configuration has a Scheduler.
//
// An actor in the same ActorSystem finds the System with [SystemOf]. To schedule
// without waiting for Redis, it sends a message to the [System.Gateway].
//
// # Guarantees
//
// A timer is delivered at least once, never before its instant by Redis's
// clock, and stays in Redis until the success of a handler is written. It may be
// delivered more than once: after a crash, or after its lease was lost. The
// System extends the lease while the handler runs, and cancels the handler's
// context when the lease is lost. Settlements are fenced: a handler that lost
// its lease cannot change the timer.
//
// Scheduling an existing id replaces the timer. A handler that runs at that
// moment continues, and its verdict does not affect the new timer, so a handler
// may schedule its own id.
//
// # Concurrency
//
// All types are safe for concurrent use. Up to [MaxConcurrent] goroutines of
// each node call a handler's function at once. Timers are claimed in the order
// of their instants; handlers that run concurrently may finish in another order.
//
// # Python
//
// Keys and bytes are those of faststream-redis-timers: either side can
// schedule, deliver, cancel and inspect timers of the other. See docs/keys.md.
//
// # Errors
//
// Errors wrap the sentinels of this package, for errors.Is; [Retryable] reports
// whether the same call may succeed later.
//
//	ErrUnavailable     retryable; the outcome is unknown, and the call was
//	                   already retried for connection.Config.RetryFor
//	ErrMemoryFull      retryable; nothing was written
//	ErrTooFewReplicas  retryable; the timer is stored
//	context.DeadlineExceeded
//	                   retryable; the outcome is unknown
//	ErrInvalid         an argument is wrong; the text names it and its bound,
//	                   nothing was written
//	ErrNotFound        the timer, dead letter or recurring schedule does not exist
//	ErrTooLarge        another program wrote a payload over the limit for
//	                   reading; the timer is dead-lettered when it is due
//	ErrDenied, ErrWrongType, ErrUnsupported
//	                   the Redis server, its users or its keys need a correction
//	ErrLeaseLost, ErrCancelled, ErrSuperseded, ErrSettled
//	                   Meta.Settle and Meta.Extend: the handler no longer holds
//	                   the timer
package wakebell
