package recurring

import (
	"time"

	"github.com/wakebell/wakebell/internal/recur"
)

// Rule says when a recurring schedule fires. Exactly one of Every, Cron,
// Crontab and RRule is to be set; the zero value of the rest is the default.
type Rule struct {
	// Every is the time between two runs, 1 µs to 100 years, counted from the
	// first Put, or from Start. Relative cuts the instants to whole days, hours
	// or minutes, for an Every of at least a day, an hour, a minute.
	Every    time.Duration
	Relative bool

	// Cron is a standard expression of 5 fields, or of 6 with seconds before
	// them. Where day of the month and day of the week are both restricted,
	// either is enough. A Python beat passes such a schedule over.
	Cron string

	// Crontab is a crontab as Celery reads it: all of its fields must match.
	Crontab *Crontab

	// RRule is a rule of RFC 5545, as in "FREQ=WEEKLY;BYDAY=MO;BYHOUR=9". It may
	// begin with a line "DTSTART:…", or "DTSTART;TZID=Europe/Berlin:…"; without,
	// it begins with the first Put.
	RRule string

	// Zone is the IANA time zone of Cron, Crontab and Relative, default UTC (of
	// Crontab and Relative: Beat.Zone). A time that its clocks show twice fires
	// once, the first time. One that they skip fires at the first instant after
	// the gap, or with SkipGaps not at all.
	Zone     string
	SkipGaps bool

	// Jitter puts every run off by up to so much, by chance, but on all nodes
	// alike; at most a day.
	Jitter time.Duration

	// Start and Until bound the runs, both included. MaxRuns ends the schedule
	// after so many that were fired, by hand too.
	Start, Until time.Time
	MaxRuns      int64

	// Misfire says what becomes of runs that were missed while no beat ran.
	// MisfireLimit bounds MisfireAll, default 100, at most 10,000: the last ones
	// count.
	Misfire      Misfire
	MisfireLimit int

	// Overlap says what becomes of a run while the timer of the last one is
	// there, pending, running or waiting to be retried.
	Overlap Overlap

	// Headers travel with every run, beside wakebell-schedule (the name),
	// wakebell-due (the instant) and wakebell-run (the number, from 1).
	Headers map[string]string
}

// Crontab has the fields of Celery's crontab, as Celery writes them; an empty
// one is "*".
type Crontab = recur.Crontab

// Misfire says what becomes of runs that were missed.
type Misfire = recur.Misfire

const (
	// MisfireOnce: the last of them fires.
	MisfireOnce = recur.MisfireOnce
	// MisfireSkip: none fires that is more than 10 s late.
	MisfireSkip = recur.MisfireSkip
	// MisfireAll: each fires, up to MisfireLimit.
	MisfireAll = recur.MisfireAll
)

// Overlap says what becomes of a run while the timer of the last is there.
type Overlap = recur.Overlap

const (
	// OverlapAllow: it fires all the same.
	OverlapAllow = recur.OverlapAllow
	// OverlapSkip: it does not.
	OverlapSkip = recur.OverlapSkip
	// OverlapQueue: it fires when the last is gone; of several only the last.
	OverlapQueue = recur.OverlapQueue
)
