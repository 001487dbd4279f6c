package simulate

import (
	"maps"
	"strings"
	"time"

	"github.com/wakebell/wakebell/internal/recur"
)

// rule is the rule of a recurring schedule: an interval, or minutes of the local time.
type rule struct {
	every   time.Duration
	cron    string
	matches func(local time.Time) bool // the same as cron, by the wall clock
	wild    bool                       // it fires in both passes of a local hour that is repeated
	zone    string
	skip    bool // skipped local times do not fire
	misfire recur.Misfire
}

// rules are those of schedules. The hours and days are those in which clocks change, and months
// end, after the instants of begins.
var rules = []rule{
	{every: 7 * time.Second, misfire: recur.MisfireAll},
	{every: 90 * time.Second},
	{cron: "*/3 1-3 * * *", matches: func(t time.Time) bool { return t.Minute()%3 == 0 && t.Hour() >= 1 && t.Hour() <= 3 }, wild: true, zone: "Europe/Berlin", misfire: recur.MisfireAll},
	{cron: "*/4 * * * *", matches: func(t time.Time) bool { return t.Minute()%4 == 0 }, wild: true, zone: "Europe/Berlin", skip: true},
	{cron: "0,20,40 0-4 * * *", matches: func(t time.Time) bool { return t.Minute()%20 == 0 && t.Hour() <= 4 }, zone: "Europe/Berlin", misfire: recur.MisfireAll},
	{cron: "30 2 * * *", matches: func(t time.Time) bool { return t.Minute() == 30 && t.Hour() == 2 }, zone: "Europe/Berlin", misfire: recur.MisfireAll},
	{cron: "*/5 * 29-31 * *", matches: func(t time.Time) bool { return t.Minute()%5 == 0 && t.Day() >= 29 }, wild: true, zone: "UTC", misfire: recur.MisfireAll},
	{cron: "0-59/6 * 1 * *", matches: func(t time.Time) bool { return t.Minute()%6 == 0 && t.Day() == 1 }, zone: "UTC", misfire: recur.MisfireAll},
}

// begins are the instants at which runs begin: clocks change in Berlin after 15 minutes, or a
// month ends.
var begins = []time.Time{
	{},
	time.Date(2000, 3, 26, 0, 45, 0, 0, time.UTC),
	time.Date(2000, 10, 29, 0, 45, 0, 0, time.UTC),
	time.Date(2000, 2, 28, 23, 45, 0, 0, time.UTC),
	time.Date(2000, 4, 30, 23, 45, 0, 0, time.UTC),
}

// schedule is a recurring schedule, and what it has fired.
type schedule struct {
	rule  *rule
	from  time.Time // the instants after this one fire
	fired map[int64]bool
	until time.Time      // up to which the instants are in due
	due   map[int64]bool // those of the rule, in µs
}

// keepSchedules keeps what is known of schedules in Redis, and returns what has the judge expect that
// again: what they have fired since is fired once more, because the runs are lost too.
func (s *sim) keepSchedules() (restore func()) {
	schedules, of := maps.Clone(s.schedules), map[*schedule]schedule{}
	for _, c := range s.schedules {
		was := *c
		was.fired = maps.Clone(c.fired)
		of[c] = was
	}
	return func() {
		for c, was := range of {
			c.rule, c.from, c.fired = was.rule, was.from, was.fired
		}
		idle := len(s.schedules) == 0
		if s.schedules = schedules; idle && len(schedules) > 0 {
			for _, b := range s.beats {
				b.later(longestTurn) // no hint comes
			}
		}
	}
}

// fires reports whether an instant that has come is one of the schedule.
func (c *schedule) fires(at time.Time) bool {
	if c.due == nil {
		c.until, c.due = c.from, map[int64]bool{}
	}
	if at.After(c.until) {
		for _, next := range c.rule.instants(c.from, c.until, at) {
			c.due[next.UnixMicro()] = true
		}
		c.until = at
	}
	return c.due[at.UnixMicro()]
}

// instants returns the instants of a rule that is in force from an instant on, after one, up to
// another. It goes minute by minute, so
// that it has nothing in common with the code that it checks.
func (r *rule) instants(begin, from, to time.Time) (all []time.Time) {
	if r.every > 0 {
		for at := begin.Add((from.Sub(begin)/r.every + 1) * r.every); !at.After(to); at = at.Add(r.every) {
			all = append(all, at)
		}
		return all
	}
	zone, err := time.LoadLocation(r.zone)
	if err != nil {
		panic(err)
	}
	for at := from.Truncate(time.Minute).Add(time.Minute); !at.After(to); at = at.Add(time.Minute) {
		if r.fires(at.In(zone)) {
			all = append(all, at)
		}
	}
	return all
}

// fires reports whether a rule fires at an instant. Clocks change by whole hours.
func (r *rule) fires(local time.Time) bool {
	_, offset := local.Zone()
	_, before := local.Add(-time.Minute).Zone()
	for skipped := range max(offset-before, 0) / 60 {
		wall := time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute()-1-skipped, 0, 0, time.UTC)
		if !r.skip && r.matches(wall) {
			return true
		}
	}
	second := local.Add(-time.Hour).Hour() == local.Hour()
	return r.matches(local) && (r.wild || !second)
}

// runsFired takes the runs that were fired out of their topic, and checks them: each instant
// fires once, not before it has come.
func (j *judge) runsFired() {
	s := j.sim
	ids, err := s.rdb.ZRange(s.ctx, "timers_timeline:"+runs, 0, -1).Result()
	if err != nil || len(ids) == 0 {
		return
	}
	if _, err := s.clients[0].store.Cancel(s.ctx, runs, ids...); err != nil {
		s.broken("errors", "take the runs: %v", err)
	}
	for _, id := range ids {
		j.runFired(id)
	}
}

// runFired checks a run that was fired, and returns its instant.
func (j *judge) runFired(id string) time.Time {
	s := j.sim
	name, stamp, _ := strings.Cut(id, "@")
	due, err := time.Parse(time.RFC3339Nano, stamp)
	of := s.schedules[name]
	switch {
	case err != nil || of == nil:
		s.broken("schedules", "%s was fired, and there is no such schedule", id)
	case due.After(j.sim.now()):
		s.broken("never early", "%s was fired %v early", id, due.Sub(s.now()))
	case of.fired[due.UnixMicro()]:
		s.broken("schedules", "%s was fired twice", id)
	case !of.fires(due):
		s.broken("schedules", "%s was fired, and that is no instant of %q in %s", id, of.rule.cron, of.rule.zone)
	}
	s.note("run %s", id)
	s.result.Fired++
	of.fired[due.UnixMicro()] = true
	return due
}

// runsComplete checks that no instant of a schedule was missed: of those with MisfireAll none at
// all (of those over which the clock has stepped, the last hundred), of the others none since nothing goes wrong.
func (j *judge) runsComplete() {
	for name, of := range j.sim.schedules {
		for _, at := range of.rule.instants(of.from, of.from, j.sim.now().Add(-soonest)) {
			owed := of.rule.misfire == recur.MisfireAll && !j.sim.passedOver(at) || at.After(j.sim.resting.Add(soonest)) && !j.sim.passedOver(at)
			if owed && !of.fired[at.UnixMicro()] {
				j.sim.broken("schedules", "%s has not fired at %v", name, at)
			}
		}
	}
}
