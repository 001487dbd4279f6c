// Package wakebell delivers durable timers to actors. A timer is a message
// that must reach a handler at or after a given instant, at least once,
// whatever crashes. Redis keeps it, protoactor-go actors deliver it.
//
// # Usage
//
// A [Topic] names a kind of timer and the type of its bodies. A [Client]
// schedules, cancels and inspects; a [System] handles:
//
//	var Invoices = wakebell.NewTopic[Invoice]("invoices")
//
//	sys, err := wakebell.New(actorSystem, rdb, wakebell.Config{Handlers: []wakebell.Handler{
//		wakebell.Handle(Invoices, charge, wakebell.MaxConcurrent(20)),
//	}})
//	err = sys.Run(ctx) // until ctx ends, then drains
//
//	c, err := wakebell.NewClient(rdb, wakebell.ClientConfig{})
//	id, err := Invoices.Schedule(ctx, c, inv, wakebell.In(72*time.Hour), wakebell.ID("inv-42"))
//
// What is to happen again and again is a [Recurring] schedule of
// [Client.Schedules], which a node with a [Beat] fires.
//
// An actor in the same ActorSystem finds the System with [SystemOf], and schedules by
// a message to its [System.Gateway] where it must not wait for Redis.
//
// # Guarantees
//
// A timer is delivered at least once, never before its instant by Redis's
// clock, and stays in Redis until a handler's success is written. It may be
// delivered more than once: after a crash, or when a lease was lost. While a
// handler runs its lease is extended; its context ends when that fails.
// Settlements are fenced, so a handler that lost its timer changes nothing.
//
// A timer that is scheduled again under its id is a new one. A handler that
// runs on the old one goes on, and its verdict does not touch the new one; so
// a handler may schedule its own id.
//
// # Concurrency
//
// All types are safe for concurrent use. A handler's function is called by up
// to [MaxConcurrent] goroutines at once on each node. Timers are claimed in
// the order of their instants; with more than one at once they may end in
// another.
//
// # Python
//
// Keys and bytes are those of faststream-redis-timers: either side may
// schedule, deliver, cancel and inspect what the other wrote. See
// docs/keys.md.
//
// # Errors
//
// Errors wrap the sentinels of this package, for errors.Is; [Retryable] says
// whether the same call may succeed later.
//
//	ErrUnavailable     retryable; the outcome is unknown, and the call has been
//	                   made again already, for as long as ClientConfig.RetryFor says
//	ErrMemoryFull      retryable, later; nothing was written
//	ErrTooFewReplicas  retryable; the timer is stored
//	a deadline         retryable; the outcome is unknown
//	ErrInvalid         the caller's fault; names the field and its bound, and is
//	                   found before anything is written
//	ErrNotFound        there is no such timer or dead letter
//	ErrTooLarge        the payload that another program wrote is over the limit
//	                   for reading; the timer becomes a dead letter when it is due
//	ErrDenied, ErrWrongType, ErrUnsupported
//	                   Redis, its users or its keys have to be put right
//	ErrLeaseLost, ErrCancelled, ErrSuperseded, ErrSettled
//	                   of Timer.Settle and Timer.Extend: it is no longer yours
package wakebell
