package simulate

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/wakebell/wakebell/redisops/shards"
	"github.com/wakebell/wakebell/reminder"
)

// jumps are the steps of the clock of Redis, forwards and backwards.
var jumps = []time.Duration{20 * time.Millisecond, 300 * time.Millisecond, 3 * time.Second, time.Minute, time.Hour}

// stepClock has the clock of Redis step. Keys expire by it.
//
// A step backwards lengthens the leases of processes that have died by as much, because Redis has
// their expiry as an instant: for an hour nothing takes such a timer back. Timers that wait behind it
// at its key wait as long, and so does a move of the topic, which leaves both where they are; it
// repeats "moved 0, left 8" until then (seed 1796011761, with PerKey(1): node 1 dies with the lease of
// w29, and the clock steps back by an hour before it expires). That is no fault: leases are counted by
// the clock of Redis alone, and by it the handler may still run.
func (s *sim) stepClock(o Op) {
	step := jumps[o.A%len(jumps)]
	if o.B%2 == 1 {
		step = -step
	}
	s.note("the clock of Redis steps by %v", step)
	s.beforeStep()
	s.turns.stepsFar(step.Abs() > time.Minute)
	lapsed := s.lapsed()
	s.skew += step
	for _, server := range s.servers() {
		server.SetTime(s.now())
		server.FastForward(step)
	}
	s.stepped = append(s.stepped, span{s.now().Add(-step), s.now()})
	if step < 0 {
		s.turns.setBack()
		for _, of := range s.allStarts() {
			of.setBack(-step)
		}
	}
	for _, l := range lapsed { // it may be valid again
		if l.lapsed = l.token; l.leased(s.now()) && !l.running(s.ctx) {
			l.token = ""
		}
	}
}

// span is what a step of the clock has passed over; it ends before it begins if the step is backwards.
type span struct{ from, to time.Time }

// passedOver reports whether the clock has stepped over an instant, forwards or backwards.
func (s *sim) passedOver(at time.Time) bool {
	return slices.ContainsFunc(s.stepped, func(p span) bool { return at.After(p.from) != at.After(p.to) })
}

// setBackBy returns by how much the clock was set back, all in all: what was to happen at an instant
// happens so much later.
func (s *sim) setBackBy() (by time.Duration) {
	for _, p := range s.stepped {
		by += max(p.from.Sub(p.to), 0)
	}
	return by
}

// beforeStep notes that the clock is about to step: leases may end earlier than their nodes know, timers
// that are due stay so, and what has expired does not come back.
func (s *sim) beforeStep() {
	for lease := range s.judge.leases {
		s.judge.overtaken[lease] = true
	}
	for id, m := range s.judge.marks {
		if !m.until.After(s.now()) {
			s.judge.unsure(id)
		}
	}
	s.messages.expire()
	if t := s.turns; !s.now().Before(t.until) { // Redis may have passed the turn on, to a process that has not heard of it
		t.until = time.Time{}
	}
	for _, l := range s.timers() {
		if !l.due.After(s.now()) {
			l.ripe = l.due
		}
	}
}

// lapsed returns the timers whose leases have expired.
func (s *sim) lapsed() []located {
	return slices.DeleteFunc(s.timers(), func(l located) bool { return l.token == "" || l.leased(s.now()) })
}

// located is a timer, and where it may be.
type located struct {
	*version
	topic string
	in    []*shards.Store
}

// running reports whether Redis takes the lease of a timer for valid.
func (l located) running(ctx context.Context) bool {
	return slices.ContainsFunc(l.in, func(in *shards.Store) bool {
		t, err := in.Get(ctx, l.topic, l.id)
		return err == nil && t.Running
	})
}

// timers returns all timers.
func (s *sim) timers() (all []located) {
	add := func(timers map[string]*version, topic func(id string) string, in ...*shards.Store) {
		for _, id := range slices.Sorted(maps.Keys(timers)) {
			all = append(all, located{timers[id], topic(id), in})
		}
	}
	is := func(topic string) func(string) string { return func(string) string { return topic } }
	add(s.judge.current, is(topic), s.clients[0].store)
	if j := s.journey; j != nil {
		add(j.timers, is(travels), j.sides[0].store, j.sides[1].store)
		add(j.again, is(travels), j.sides[0].store)
	}
	if w := s.workflow; w != nil {
		add(w.timers, func(id string) string { return w.topics[id] }, w.store)
	}
	if m := s.minder; m != nil {
		add(m.timers, is(reminder.DefaultTopic), m.store)
	}
	return all
}

// counts reports whether a verdict of the lease must count. One that had expired may be valid again,
// while its timer has moved.
func (v *version) counts(now time.Time) bool { return v.leased(now) && !v.vague(now) }

// vague reports whether Redis may take the timer for one that is not leased.
func (v *version) vague(now time.Time) bool { return v.leased(now) && v.token == v.lapsed }

// early reports whether a timer has not been due at an instant, nor was before the clock stepped.
func (v *version) early(at time.Time) bool { return v.due.After(at.Add(grain)) && !v.ripe.Equal(v.due) }

// allStarts returns what is known of all buckets.
func (s *sim) allStarts() []*starts {
	all := []*starts{s.judge.starts}
	if j := s.journey; j != nil {
		all = append(all, j.sides[0].starts, j.sides[1].starts)
	}
	if s.workflow != nil {
		all = append(all, s.workflow.starts)
	}
	if s.minder != nil {
		all = append(all, s.minder.starts)
	}
	return all
}

// withSteps has the clock of Redis step in a ninth of the plans, some of them with joins or reminders.
func (p *Plan) withSteps() {
	if p.Seed%16 != 4 && p.Seed%64 != 49 && p.Seed%32 != 10 {
		return
	}
	p.addFaults(clocks, 7, 10)
	p.Steps = true
}
