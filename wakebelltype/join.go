package wakebelltype

import "time"

// JoinHeader is the header of a timer that has a join: the name of the join.
const JoinHeader = "wakebell-join"

// Part names a timer on which a join waits.
type Part struct {
	Topic string `json:"topic"` // without the prefix of the client
	ID    string `json:"id"`
}

// Join is a timer that becomes due when others have ended, its parts, or at its instant.
type Join struct {
	Open  bool  `json:"open"`  // parts may be added; it does not become due before it is closed
	Parts int64 `json:"parts"` // at most 100,000

	// The numbers of parts that have ended, by how; see End.
	Done      int64 `json:"done"`
	Dead      int64 `json:"dead"`
	Cancelled int64 `json:"cancelled"`
	Missing   int64 `json:"missing"`
}

// Ended returns the number of parts that have ended.
func (j Join) Ended() int64 { return j.Done + j.Dead + j.Cancelled + j.Missing }

// Complete reports whether the join is closed and all of its parts have ended.
func (j Join) Complete() bool { return !j.Open && j.Ended() >= j.Parts }

// PartEnd says how a part of a join has ended.
type PartEnd struct {
	Part
	End    End       `json:"end"`         // empty: it has not ended
	Reason string    `json:"reason"`      // of a dead letter
	At     time.Time `json:"at,omitzero"` // when its end was noted, by Redis's clock
	Cursor string    `json:"cursor"`      // continues a listing after this part; see Page
}
