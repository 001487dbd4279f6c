package wakebelltype

import "time"

// Breaker configures the circuit breaker of a handler.
type Breaker struct {
	// FailureRatio is the part of the deliveries that fail at which the breaker opens,
	// above 0 and up to 1.
	FailureRatio float64
	// Deliveries is the number of deliveries in Window below which it does not open, 1 to
	// 1,000,000; 0 means 20.
	Deliveries int
	// Window is how far back deliveries count, 10 ms to 24 h; 0 means 1 min.
	Window time.Duration
	// OpenFor is how long it stays open until one timer is tried, 10 ms to 24 h; 0 means
	// 30 s.
	OpenFor time.Duration
}
