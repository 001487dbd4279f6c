package wakebelltype

// Adaptive configures the adaptive concurrency of a handler.
type Adaptive struct {
	// Min is the lower bound of what MaxConcurrent is lowered to, 1 to 10,000; 0 means 1.
	// If MaxConcurrent is lower, it applies.
	Min int
	// Slowdown is by how much slower than under little load the handler may be, above 1
	// and up to 10; 0 means 1.5.
	Slowdown float64
	// FailureRatio is the part of the deliveries that fail at which the concurrency
	// shrinks, above 0 and up to 1; 0 means 0.1.
	FailureRatio float64
}
