package wakebelltype

import "time"

// RepairOptions choose what Client.Repair does. The zero value changes nothing and counts.
type RepairOptions struct {
	// Apply restores and removes; otherwise the result says what that would do.
	Apply bool
	// At is when restored timers are due whose instants were lost; zero: at once.
	At time.Time
	// DropMissing makes a timer without a payload a dead letter now, not when it is due.
	DropMissing bool
}

// Repaired counts what a repair of a topic has done, or would do.
type Repaired struct {
	Examined int64 `json:"examined"` // payloads, timers and records
	Restored int64 `json:"restored"` // payloads without a timer that have one again
	Known    int64 `json:"known"`    // of Restored, those whose instants were found
	// Missing has the timers without a payload. One that a handler has can count twice
	// while others are dropped, because Redis may return it twice.
	Missing int64 `json:"missing"`
	Dropped int64 `json:"dropped"` // of Missing, those that became dead letters
	Removed int64 `json:"removed"` // lease records and keys of timers with neither timer nor payload
}

// Add adds what another part of a repair has done.
func (r *Repaired) Add(o Repaired) {
	r.Examined += o.Examined
	r.Restored += o.Restored
	r.Known += o.Known
	r.Missing += o.Missing
	r.Dropped += o.Dropped
	r.Removed += o.Removed
}
