package wakebelltype

import "time"

// ClockSteps counts the jumps of Redis's clock that a node noticed: an administrator
// set it, or a failover led to a server with another clock. A local machine that was
// suspended looks the same.
type ClockSteps struct {
	Count int64         `json:"count"`
	Last  time.Time     `json:"last,omitzero"` // when the last jump was noticed; zero: none was
	By    time.Duration `json:"by_ns"`         // least size of the last jump; negative: backward
}

// Counters count what a topic's pollers did since the runtime was started, over
// all their incarnations.
type Counters struct {
	Delivered      int64 `json:"delivered"`       // leases passed to a handler
	Acked          int64 `json:"acked"`           // settled as handled
	Retried        int64 `json:"retried"`         // settled with a failure, due again
	Snoozed        int64 `json:"snoozed"`         // settled by Snooze, due again, without a failure
	Expired        int64 `json:"expired"`         // ended, because they could not begin within their ExpireAfter; with those of ExpiredDead
	DeadLettered   int64 `json:"dead_lettered"`   // dead-lettered
	Discarded      int64 `json:"discarded"`       // rejected under DiscardRejected, and messages failed under ErrorsAreFinal
	Released       int64 `json:"released"`        // returned unhandled
	Crashed        int64 `json:"crashed"`         // handlers that panicked, or whose actor failed; without those at the last attempt, which are dead-lettered
	Superseded     int64 `json:"superseded"`      // scheduled again while their handler ran
	Cancelled      int64 `json:"cancelled"`       // cancelled while their handler ran
	Lost           int64 `json:"lost"`            // leases that expired before they were settled or extended
	Hung           int64 `json:"hung"`            // handlers ended by the maximum lease age
	OrphansRemoved int64 `json:"orphans_removed"` // entries without a timer that were removed
	OrphansHeld    int64 `json:"orphans_held"`    // payloads without a timer that stay, because timers were lost; 0: none
	Exchanges      int64 `json:"exchanges"`       // replies
	Empty          int64 `json:"empty"`           // polls that found nothing and settled and extended nothing
	Peeks          int64 `json:"peeks"`           // polls that found nothing new without an exchange
	Errors         int64 `json:"errors"`          // exchanges that failed
	Restarts       int64 `json:"restarts"`        // of the poller
	ClockSteps     int64 `json:"clock_steps"`     // jumps of Redis's clock that this topic noticed first
	HookCalls      int64 `json:"hook_calls"`      // calls of the dead-letter hook
	HookSkipped    int64 `json:"hook_skipped"`    // dead letters that the hook was not called for
	HookPanics     int64 `json:"hook_panics"`     // calls of the hook that panicked or ended their goroutine

	Repeated         int64 `json:"repeated"`          // of Delivered, those that are not the first attempt
	Rejected         int64 `json:"rejected"`          // of DeadLettered, those that the handler rejected
	ExpiredDead      int64 `json:"expired_dead"`      // of DeadLettered, those that expired
	PayloadsMissing  int64 `json:"payloads_missing"`  // of DeadLettered, those that were due without a payload in Redis
	RejectedAcks     int64 `json:"rejected_acks"`     // of Acked, those that the handler rejected under DiscardRejected
	HeartbeatsFailed int64 `json:"heartbeats_failed"` // extensions of leases that failed, were too late, or were not sent in time
	PrefetchReturned int64 `json:"prefetch_returned"` // prefetched leases that were returned, because no handler was free
	HandlerRestarts  int64 `json:"handler_restarts"`  // of handlers, each after a panic
	Held             int64 `json:"held"`              // leases held at present
	BreakerOpen      int64 `json:"breaker_open"`      // 1 while the circuit breaker is open or half-open
	BreakerOpened    int64 `json:"breaker_opened"`    // times that it opened
	Throttled        int64 `json:"throttled"`         // exchanges from which RateLimit or MaxInFlight held timers back
	KeyThrottled     int64 `json:"key_throttled"`     // timers that RateLimitByKey made wait, each time
	Concurrency      int64 `json:"concurrency"`       // handlers that may run at once, if that is adaptive; otherwise 0

	FallbackDelivered int64 `json:"fallback_delivered"` // of Delivered, those that this node claimed as a fallback
	HelpRequests      int64 `json:"help_requests"`      // times that this node asked fallbacks to claim as well

	// Role is primary or fallback; empty: the topic is not divided among nodes.
	Role string `json:"role"`

	// LastExchange is when the source last answered; zero: never.
	LastExchange time.Time `json:"last_exchange,omitzero"`
}
