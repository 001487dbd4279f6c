package wakebelltype

import "time"

// ClockSteps counts the jumps of Redis's clock that a node noticed: an administrator
// set it, or a failover led to a server with another clock. A local machine that was
// suspended looks the same.
type ClockSteps struct {
	Count int64
	Last  time.Time     // when the last jump was noticed; zero: none was
	By    time.Duration // least size of the last jump; negative: backward
}

// Counters count what a topic's pollers did since the runtime was started, over
// all their incarnations.
type Counters struct {
	Delivered      int64 // leases passed to a handler
	Acked          int64 // settled as handled
	Retried        int64 // settled with a failure, due again
	DeadLettered   int64 // dead-lettered
	Discarded      int64 // rejected under DiscardRejected, and messages failed under ErrorsAreFinal
	Released       int64 // returned unhandled
	Crashed        int64 // handlers that panicked
	Superseded     int64 // scheduled again while their handler ran
	Cancelled      int64 // cancelled while their handler ran
	Lost           int64 // leases that expired before they were settled or extended
	Hung           int64 // handlers ended by the maximum lease age
	OrphansRemoved int64 // entries without a timer that were removed
	Exchanges      int64 // replies
	Empty          int64 // polls that found nothing and settled and extended nothing
	Peeks          int64 // polls that found nothing new without an exchange
	Errors         int64 // exchanges that failed
	Restarts       int64 // of the poller
	ClockSteps     int64 // jumps of Redis's clock that this topic noticed first
	HookCalls      int64 // calls of the dead-letter hook
	HookSkipped    int64 // dead letters that the hook was not called for
	HookPanics     int64 // calls of the hook that panicked or ended their goroutine

	// LastExchange is when the source last answered; zero: never.
	LastExchange time.Time
}
