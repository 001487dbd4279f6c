package simulate

import (
	"time"

	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// mark is what is known of an id that was scheduled with Once.
type mark struct {
	made  bool
	until time.Time // it holds until then at least; zero: that is not known
}

// scheduled notes the outcome of a schedule.
func (j *judge) scheduled(e *timers.Entry, done wakebelltype.Scheduled) {
	old := j.current[e.ID]
	switch done.Outcome {
	case wakebelltype.OutcomeCreated, wakebelltype.OutcomeReplaced, wakebelltype.OutcomeSuperseded, wakebelltype.OutcomeMoved:
		j.written(e, done, old)
	case wakebelltype.OutcomeAlreadyDone:
		if old != nil || e.Once == 0 || !j.marks[e.ID].made {
			j.sim.broken("answers", "schedule of %s: %v, and nothing was delivered once", e.ID, done.Outcome)
		}
	default:
		if old == nil {
			j.sim.broken("answers", "schedule of %s: %v, and there is no timer", e.ID, done.Outcome)
		}
	}
}

// written notes a schedule that was written.
func (j *judge) written(e *timers.Entry, done wakebelltype.Scheduled, old *version) {
	now := j.sim.now()
	if want := outcomeOf(e, old, now); done.Outcome != want {
		j.sim.broken("answers", "schedule of %s: %v, expected %v", e.ID, done.Outcome, want)
	}
	if m := j.marks[e.ID]; old == nil && e.Once > 0 && m.until.After(now) {
		j.sim.broken("once", "%s is scheduled once more, and its mark holds for %v", e.ID, m.until.Sub(now))
	}
	if e.Policy == wakebelltype.PolicyEarliest && old != nil && !old.leased(now) && done.Due.After(old.due.Add(grain)) {
		j.sim.broken("earliest", "%s is made later, by %v", e.ID, done.Due.Sub(old.due))
	}
	if want := now.Add(e.In); e.In > 0 && done.Due.After(want.Add(grain)) || e.In > 0 && e.MaxDelay == 0 && done.Due.Before(want.Add(-grain)) {
		j.sim.broken("answers", "%s is due in %v, expected %v", e.ID, done.Due.Sub(now), e.In)
	}
	v := &version{id: e.ID, key: e.Key, payload: string(e.Payload), due: done.Due}
	if old != nil && e.Key == "" {
		v.key = old.key
	}
	if e.Policy == wakebelltype.PolicyDebounce {
		v.first = now
		if done.Outcome == wakebelltype.OutcomeMoved && !old.first.IsZero() {
			v.first = old.first
		}
		if most := v.first.Add(e.MaxDelay + grain); e.MaxDelay > 0 && done.Due.After(most) {
			j.sim.broken("debounce", "%s is due %v after its bound", e.ID, done.Due.Sub(most))
		}
	}
	j.put(v)
	if e.Once == 0 {
		j.unsure(e.ID)
		return
	}
	from := now
	if done.Due.After(now) {
		from = done.Due
	}
	j.marks[e.ID] = mark{made: true, until: from.Add(e.Once - grain - keysAge)}
}

// unsure forgets until when the mark of an id holds.
func (j *judge) unsure(id string) { j.marks[id] = mark{made: j.marks[id].made} }

// outcomeOf returns the outcome of a schedule that is written over a timer, nil if none.
func outcomeOf(e *timers.Entry, old *version, now time.Time) wakebelltype.Outcome {
	switch {
	case old == nil:
		return wakebelltype.OutcomeCreated
	case old.leased(now):
		return wakebelltype.OutcomeSuperseded
	case e.Policy == wakebelltype.PolicyDebounce:
		return wakebelltype.OutcomeMoved
	default:
		return wakebelltype.OutcomeReplaced
	}
}
