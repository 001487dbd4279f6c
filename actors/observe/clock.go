package observe

import (
	"sync"
	"time"

	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	// MinClockStep is the smallest step of a clock that is reported.
	MinClockStep = time.Second
	// MaxClockDrift is how far two correct clocks drift apart, as a fraction of
	// the elapsed time: twice the rate at which NTP slews.
	MaxClockDrift = 1e-3
)

// ClockWatch compares the advance of a source's clock with that of the local
// monotonic clock. The pollers of one shard share it.
//
// A reply bounds the offset between the two clocks: the source's clock was read
// after the request was sent and before the reply arrived. Bounds that do not
// overlap with earlier ones show a step; others narrow them.
type ClockWatch struct {
	mu     sync.Mutex
	local  time.Time // the instants that the offset counts from
	source time.Time
	at     time.Time // when the bounds were computed
	// low and high bound the offset. Invariant: low <= high.
	low, high time.Duration
	steps     wakebelltype.ClockSteps
}

// Observe processes a reading of the source's clock, and returns by how much that
// has stepped; 0: it has not.
func (w *ClockWatch) Observe(sent, received, source time.Time) (step time.Duration) {
	if source.IsZero() {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.local.IsZero() {
		w.local, w.source = sent, source
		w.low, w.high, w.at = -received.Sub(sent), 0, received
		return 0
	}
	elapsed := source.Sub(w.source)
	low, high := elapsed-received.Sub(w.local), elapsed-sent.Sub(w.local)
	drift := time.Duration(MaxClockDrift * float64(max(received.Sub(w.at), 0)))
	switch {
	case low > w.high+drift:
		step = low - w.high - drift
	case high < w.low-drift:
		step = high - w.low + drift
	default:
		low, high = max(low, w.low-drift), min(high, w.high+drift)
	}
	w.low, w.high, w.at = low, high, received
	if step.Abs() <= MinClockStep {
		return 0
	}
	w.steps = wakebelltype.ClockSteps{Count: w.steps.Count + 1, Last: received, By: step}
	return step
}

// Noticed returns the number of steps so far, and the last one.
func (w *ClockWatch) Noticed() wakebelltype.ClockSteps {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.steps
}
