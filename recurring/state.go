package recurring

import (
	"strings"
	"time"

	"github.com/wakebell/wakebell/internal/recur"
)

// State is a recurring schedule as it is stored.
type State struct {
	Name     string
	Topic    string // of the runs; for Celery messages the name of the task
	RuleText string // the rule as text: "every 30s", "cron 0 9 * * 1-5"

	// Rule has the fields of the rule except Every, Relative and Crontab, which
	// are only in RuleText. It is empty for an entry that Python stored.
	Rule Rule

	Next    time.Time // the next instant, in the past while it is overdue; zero: none
	LastRun time.Time // the latest instant that was fired; zero: none yet
	Runs    int64     // the number of the last run
	Paused  bool      // by Pause, or disabled by Python
	Celery  bool      // stored by Celery: the runs are Celery messages

	// Overdue is for how long Next has been due by the clock of Redis; 0: it is not, or the
	// schedule is paused, or the State is from a node of a version without it.
	Overdue time.Duration

	// Fault says why the entry cannot be read; empty: it can. With a Fault, only
	// Name is set beside it, and the entry does not fire until it is changed.
	Fault string

	// ZoneWarning says why the instants may be those of a wrong zone: the last run was
	// written with an offset that connection.Config.Zone does not have at that instant. Empty:
	// it was not, or the rule does not depend on the zone. A State from a node does
	// not have it.
	ZoneWarning string

	// Cursor continues a listing after this schedule: its name. Only List sets it.
	Cursor string
}

// overdue sets Overdue; now asks for the time of Redis if it is needed.
func (s *State) overdue(now func() (time.Time, error)) error {
	if s.Paused || s.Next.IsZero() {
		return nil
	}
	at, err := now()
	if err == nil {
		s.Overdue = max(0, at.Sub(s.Next))
	}
	return err
}

func (s *Schedules) state(e *recur.Entry) State {
	o, prefix := e.Ours, s.manual.Maker.Prefix
	state := State{
		Name: strings.TrimPrefix(e.Definition.Name, prefix), Topic: e.Topic(), RuleText: e.Rule(), Next: e.Due(), LastRun: e.LastRun(),
		Runs: max(o.Run, e.Meta.Runs), Paused: !e.Enabled(), Celery: o.Celery, ZoneWarning: e.ZoneWarning(),
		Rule: Rule{
			Cron: o.Cron, RRule: o.Source, Zone: o.Zone, SkipGaps: o.SkipGaps, Jitter: o.Jitter, Start: o.Start, Until: o.Until,
			MaxRuns: o.MaxRuns, Misfire: Misfire(o.Misfire), MisfireLimit: o.MisfireLimit, Overlap: Overlap(o.Overlap), Headers: o.Headers,
		},
	}
	if !o.Celery {
		state.Topic = strings.TrimPrefix(state.Topic, prefix)
	}
	return state
}
