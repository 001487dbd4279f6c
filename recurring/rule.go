package recurring

import (
	"errors"
	"time"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/envelope"
)

// Rule says when a recurring schedule fires. Exactly one of Every, Cron,
// Crontab and RRule is required; the zero value of each other field is its
// default.
type Rule struct {
	// Every is the time between two runs, 1 µs to 100 years, counted from the
	// first Put, or from Start. With Relative the runs fall on whole days if Every
	// is at least a day, on whole hours if it is at least an hour, and on whole
	// minutes if it is at least a minute.
	Every    time.Duration
	Relative bool

	// Cron is a standard expression of 5 fields, or of 6 with seconds first. If
	// day of the month and day of the week are both restricted, a day that
	// matches either fires. A Python beat skips such a schedule.
	Cron string

	// Crontab is a crontab of Celery: all of its fields must match.
	Crontab *Crontab

	// RRule is a rule of RFC 5545, such as "FREQ=WEEKLY;BYDAY=MO;BYHOUR=9". It may
	// begin with a line "DTSTART:…", or "DTSTART;TZID=Europe/Berlin:…". Without
	// one it starts at Start, or at the first whole second after the first Put.
	RRule string

	// Zone is the IANA time zone of Cron, Crontab, RRule and Relative; a TZID in
	// RRule must be the same. The default is UTC for Cron and RRule, and
	// connection.Config.Zone for Crontab and Relative. A Python beat skips a Crontab
	// or a relative interval with a Zone.
	//
	// A local time that occurs twice fires both times if the minute or the hour of
	// Cron or Crontab begins with a star, or RRule recurs by hours or less without
	// BYHOUR with a fixed minute, and without COUNT; else it fires the first time.
	// A local time that is skipped fires at the first instant after the gap, or
	// with SkipGaps not at all.
	Zone     string
	SkipGaps bool

	// Jitter delays each run by a random time up to this, and less than the time to
	// the next instant; the same on all nodes. 0 to 24 h.
	Jitter time.Duration

	// Start and Until bound the instants, both included; zero means unbounded.
	// MaxRuns ends the schedule after so many fired runs, those of RunNow
	// included; 0 means unbounded.
	Start, Until time.Time
	MaxRuns      int64

	// Misfire says what happens to runs that were missed while no scheduler ran.
	// MisfireLimit bounds MisfireAll to the latest runs, 0 to 10,000; 0 means 100.
	Misfire      Misfire
	MisfireLimit int

	// Overlap says what happens to a run while the timer of the previous run
	// exists: pending, running or waiting for a retry.
	Overlap Overlap

	// Headers are added to every run, beside wakebell-schedule (the name),
	// wakebell-due (the instant) and wakebell-run (the number, from 1). A key and
	// a value have at most 65,535 bytes each.
	Headers map[string]string
}

// Crontab has the fields of Celery's crontab, in Celery's syntax. An empty field
// means "*".
type Crontab struct {
	Minute     string
	Hour       string
	DayOfWeek  string // 0 is Sunday; names such as "mon-fri" are allowed
	DayOfMonth string
	Month      string
}

// Misfire says what happens to runs that were missed while no scheduler ran.
type Misfire string

const (
	// MisfireOnce fires the last of the missed runs.
	MisfireOnce Misfire = ""
	// MisfireSkip fires no run that is over 10 s late.
	MisfireSkip Misfire = "skip"
	// MisfireAll fires each missed run, up to MisfireLimit.
	MisfireAll Misfire = "all"
)

// Overlap says what happens to a run while the timer of the previous one exists.
type Overlap string

const (
	// OverlapAllow fires the run.
	OverlapAllow Overlap = ""
	// OverlapSkip drops the run.
	OverlapSkip Overlap = "skip"
	// OverlapQueue fires the run when the timer of the previous one is gone. Of
	// several waiting runs it fires only the last.
	OverlapQueue Overlap = "queue"
)

// mostAtOnce bounds MisfireLimit, and the instants of one call.
const mostAtOnce = 10_000

// validate reports all that is wrong with the rule, except for the syntax of
// Cron, Crontab and RRule, which is checked when the rule is compiled.
func (r Rule) validate() error {
	var errs []error
	check := func(ok bool, field, format string, args ...any) {
		if !ok {
			errs = append(errs, argument.Invalid(field, format, args...))
		}
	}
	kinds := 0
	for _, set := range []bool{r.Every != 0, r.Cron != "", r.Crontab != nil, r.RRule != ""} {
		if set {
			kinds++
		}
	}
	check(kinds == 1, "Rule", "want exactly one of Every, Cron, Crontab and RRule, got %d", kinds)
	check(!r.Relative || r.Every != 0, "Relative", "it requires Every")
	check(r.MaxRuns >= 0, "MaxRuns", "%d is negative", r.MaxRuns)
	check(r.Misfire == MisfireOnce || r.Misfire == MisfireSkip || r.Misfire == MisfireAll,
		"Misfire", `%s, want "", "skip" or "all"`, argument.Quote(string(r.Misfire)))
	check(r.Overlap == OverlapAllow || r.Overlap == OverlapSkip || r.Overlap == OverlapQueue,
		"Overlap", `%s, want "", "skip" or "queue"`, argument.Quote(string(r.Overlap)))
	check(r.Until.IsZero() || !r.Until.Before(r.Start), "Until", "it is before Start")
	for key, value := range r.Headers {
		err := envelope.CheckHeader(key, value)
		check(err == nil, "Headers["+argument.Quote(key)+"]", "%v", err)
	}
	return errors.Join(append(errs,
		argument.Within("Jitter", r.Jitter, 0, 24*time.Hour),
		argument.Within("MisfireLimit", r.MisfireLimit, 0, mostAtOnce))...)
}
