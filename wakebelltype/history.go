package wakebelltype

import "time"

// HistoryPolicy says which attempts of a topic or a queue a node records; see
// wakebell.History.
type HistoryPolicy uint8

const (
	// HistoryFailures records attempts that did not succeed, and the success of a timer
	// that was attempted before. It is the default.
	HistoryFailures HistoryPolicy = iota
	// HistoryOff records none.
	HistoryOff
	// HistoryAll records all attempts.
	HistoryAll
)

// String returns "failures", "off" or "all"; "unknown" for another value.
func (p HistoryPolicy) String() string { return word(historyPolicies, p+1) }

// MarshalText returns the String.
func (p HistoryPolicy) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads a String other than "unknown".
func (p *HistoryPolicy) UnmarshalText(text []byte) error {
	var n HistoryPolicy
	if err := parse(historyPolicies, text, &n); err != nil {
		return err
	}
	*p = n - 1
	return nil
}

// Attempt is the record of a delivery of a timer, or of a message of a queue.
type Attempt struct {
	ID      string `json:"id"`      // of the timer or message
	Attempt int    `json:"attempt"` // deliveries, this one included; 0: unknown
	Node    string `json:"node"`    // host/pid/name of the System

	Started time.Time     `json:"started,omitzero"` // by Redis's clock, to about a millisecond
	Took    time.Duration `json:"took_ns"`          // until the handler ended

	// Outcome is EventAcked, EventRetried, EventDead, EventDiscarded, EventCrashed,
	// EventSuperseded, EventCancelled or EventLost.
	Outcome EventKind `json:"outcome"`
	Error   string    `json:"error"` // or the reason; at most 256 bytes

	// Cursor continues a listing after this attempt; see Page.
	Cursor string `json:"cursor"`
}

// Final reports whether the attempt was the last of its timer: it was handled, became
// a dead letter, or was discarded, expired or cancelled.
func (a Attempt) Final() bool {
	switch a.Outcome {
	case EventAcked, EventDead, EventDiscarded, EventExpired, EventCancelled:
		return true
	default:
		return false
	}
}

// HistoryFilter selects attempts; the zero value selects all.
type HistoryFilter struct {
	ID      string    // only of this timer
	Outcome EventKind // only with this outcome
	Error   string    // only those whose error contains this text
	Since   time.Time // only those that ended at or after it
	// Last selects the newest of the attempts, 1 to 1,000, which are still listed the
	// oldest first; 0: all.
	Last int
}

// Throughput has what happened on a topic or a queue, in steps.
type Throughput struct {
	Step   time.Duration      `json:"step_ns"` // a minute or a day
	Points []ThroughputCounts `json:"points"`  // of equal steps, the oldest first
}

// ThroughputCounts counts what happened in one step.
type ThroughputCounts struct {
	At        time.Time `json:"at"`        // when the step begins, in UTC
	Scheduled int64     `json:"scheduled"` // timers stored by schedules, runs of recurring schedules and redrives; messages published
	Handled   int64     `json:"handled"`   // attempts that succeeded
	Failed    int64     `json:"failed"`    // attempts that failed, without those that made a dead letter
	Dead      int64     `json:"dead"`      // timers or messages that became dead letters

	// Started counts the first attempts. Lateness is the sum of the times from the
	// instant of a timer, or the publishing of a message, to its claim, and MaxLateness
	// the longest.
	Started     int64         `json:"started"`
	Lateness    time.Duration `json:"lateness_ns"`
	MaxLateness time.Duration `json:"max_lateness_ns"`
	// Latenesses has the first attempts by their lateness. Nodes of earlier versions do not
	// count them so.
	Latenesses Latenesses `json:"latenesses,omitzero"`
}

// Add adds the counts of another topic or step. At stays.
func (c *ThroughputCounts) Add(o ThroughputCounts) {
	c.Scheduled += o.Scheduled
	c.Handled += o.Handled
	c.Failed += o.Failed
	c.Dead += o.Dead
	c.Started += o.Started
	c.Lateness += o.Lateness
	c.MaxLateness = max(c.MaxLateness, o.MaxLateness)
	c.Latenesses = c.Latenesses.Plus(o.Latenesses)
}

// LatenessQuantile returns the lateness that a part q of the first attempts, 0 to 1, does
// not exceed, at most MaxLateness; 0 without any. Of nodes of earlier versions alone it is the
// mean.
func (c ThroughputCounts) LatenessQuantile(q float64) time.Duration {
	late, found := c.Latenesses.Quantile(q)
	if !found {
		return c.MeanLateness()
	}
	if c.MaxLateness > 0 {
		late = min(late, c.MaxLateness)
	}
	return late
}

// MeanLateness returns the mean of the lateness of the first attempts; 0 without any.
func (c ThroughputCounts) MeanLateness() time.Duration {
	if c.Started == 0 {
		return 0
	}
	return c.Lateness / time.Duration(c.Started)
}
