package poller

import (
	"sync"
	"time"
)

const (
	// stepAtLeast is how far a clock has to step to be noticed.
	minClockStep = time.Second
	// driftMost is by how much two sound clocks drift apart, as a part of the
	// time that passes: twice what NTP corrects without a step.
	maxClockDrift = 1e-3
)

// ClockSteps are the steps of a source's clock that were noticed: of Redis's,
// by an administrator or a failover to a server with another clock. A machine of
// ours that slept looks the same.
type ClockSteps struct {
	Count int64
	Last  time.Time     // when the last one was noticed; zero: none was
	By    time.Duration // how far it went, at least; negative: back
}

// ClockWatch compares the advance of a source's clock with that of the local
// monotonic one. The pollers of one shard share it.
//
// An answer bounds the offset between the two: the source's clock was read
// after the request was sent and before the answer came. Bounds that have
// nothing in common with the earlier ones tell of a step; others narrow them.
type ClockWatch struct {
	mu     sync.Mutex
	local  time.Time // the instants that the offset counts from
	source time.Time
	at     time.Time // when the bounds were true
	// low and high bound the offset. Invariant: low <= high.
	low, high time.Duration
	steps     ClockSteps
}

// observe takes an answer with the source's clock in it, and returns how far
// that has stepped; 0: it has not.
func (w *ClockWatch) observe(sent, received, source time.Time) (step time.Duration) {
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
	drift := time.Duration(maxClockDrift * float64(max(received.Sub(w.at), 0)))
	switch {
	case low > w.high+drift:
		step = low - w.high - drift
	case high < w.low-drift:
		step = high - w.low + drift
	default:
		low, high = max(low, w.low-drift), min(high, w.high+drift)
	}
	w.low, w.high, w.at = low, high, received
	if step.Abs() <= minClockStep {
		return 0
	}
	w.steps = ClockSteps{Count: w.steps.Count + 1, Last: received, By: step}
	return step
}

// Noticed counts the steps so far, and has the last one.
func (w *ClockWatch) Noticed() ClockSteps {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.steps
}
