package wakebelltype

import "time"

// Stats are the statistics of a topic. Every timer is counted once: Total is the
// sum of Pending, Due, Leased and Retrying.
type Stats struct {
	Total    int64 // timers
	Pending  int64 // not due yet, including timers that a Python peer handles
	Due      int64 // can be claimed now
	Leased   int64 // leased by a Wakebell node: a handler has them
	Retrying int64 // waiting for their next attempt
	Dead     int64 // dead letters

	// Estimated reports that Pending, Leased and Retrying are estimates from 1,000
	// lease records drawn at random, because there are more.
	Estimated bool

	// OldestDue is the instant at which the first due timer became due; zero if
	// none is due.
	OldestDue time.Time
	// Lag is the time since OldestDue, by Redis's clock.
	Lag time.Duration

	Paused   bool // on all nodes; see Control
	PausedAt time.Time
}

// Control holds the cluster-wide settings of a topic: whether it is paused, and
// Settings that override the options of the nodes. Redis stores it. The zero value
// means no pause and no overrides.
type Control struct {
	Paused   bool      // nodes claim no timers of the topic; running handlers continue
	PausedAt time.Time // by Redis's clock
	PausedBy string
	Reason   string // of the pause

	// Settings override the options of the nodes.
	Settings Settings
}

// Settings override the options of a topic's handlers on all nodes. A zero field
// leaves the option of the node in force.
type Settings struct {
	MaxConcurrent int // per node, 1 to 10,000

	LeaseTTL    time.Duration // 100 ms to 24 h
	MaxLeaseAge time.Duration // 1 ms to 30 days; negative: off on every node

	PollingInterval    time.Duration // 1 ms to 1 h
	MaxPollingInterval time.Duration // 1 ms to 1 h

	RetryInitial time.Duration // delay after the first failure, 1 ms to 30 days
	RetryLimit   time.Duration // the cap up to which the delay doubles, 1 ms to 30 days
	MaxAttempts  int           // 1 to 1,000,000
}

// Overview is the statistics of a topic and its cluster-wide settings.
type Overview struct {
	Topic   string
	Stats   Stats
	Control Control

	// Err reports what could not be read; that part is zero. Causes are a key of
	// another type, or settings that were written by hand.
	Err error
}
