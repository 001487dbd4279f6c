package wakebelltype

import "time"

// ClockSteps are the steps of a source's clock that were noticed: of Redis's
// clock, by an administrator or by a failover to a server with another clock. A
// suspended local machine looks the same.
type ClockSteps struct {
	Count int64
	Last  time.Time     // when the last one was noticed; zero: none was
	By    time.Duration // its size, at least; negative: backward
}

// Counters count what a topic's pollers did since the runtime was started, over
// all their incarnations.
type Counters struct {
	Delivered      int64 // leases passed to a handler
	Acked          int64 // settled as handled
	Retried        int64 // settled with a failure, due again
	DeadLettered   int64 // dead-lettered
	Discarded      int64 // rejected where those are discarded, or failed where errors are final
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
	ClockSteps     int64 // steps of the source's clock that this topic noticed first
	HookCalls      int64 // calls of the dead-letter hook
	HookSkipped    int64 // dead letters that the hook was not called for
	HookPanics     int64 // calls of the hook that did not return

	// LastExchange is when the source last answered; zero: never.
	LastExchange time.Time
}
