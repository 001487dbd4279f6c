package fleet

import (
	"slices"
	"time"

	"github.com/wakebell/wakebell/recurring"
)

// judgeSeries checks recurring schedules: each instant becomes one timer, not before it has come,
// and none is missed, but where the rule for runs that overlap says so.
func (j *judge) judgeSeries() {
	for _, s := range j.record.series {
		expected, numbers, more := map[string]bool{}, map[string]string{}, map[string]bool{}
		for _, at := range s.instants() {
			id := s.runID(at)
			expected[id] = true
			runs := slices.DeleteFunc(slices.Clone(j.runs[s.name]), func(r *run) bool { return idOf(r.subject) != id })
			for _, r := range runs {
				if r.from.Before(at) {
					j.breaks("never early", "%s runs %s at %v", r.at, id, clock(r.from))
				}
			}
			before := s.gone == nil || at.Add(calmAfter).Before(s.gone.from) && !j.disturbed(at, s.gone.from)
			handled := slices.ContainsFunc(runs, func(r *run) bool { return r.handled })
			if s.put == done && before && !handled && (len(runs) > 0 || !j.overlaps(s, at)) {
				j.breaks("each instant of a schedule becomes one timer", "%s was not handled", id)
			}
			if s.gone != nil && s.deleted == done && at.After(s.gone.to) && len(runs) > 0 {
				j.breaks("a deleted schedule does not fire", "%s runs, and its schedule was deleted at %v", id, clock(s.gone.to))
			}
		}
		j.judgeOverlap(s)
		for _, r := range j.runs[s.name] {
			id := idOf(r.subject)
			if numbers[id] == "" {
				numbers[id] = r.number
			}
			if r.number != numbers[id] {
				j.breaks("each instant of a schedule becomes one timer", "%s is run %s, and run %s", id, numbers[id], r.number)
			}
			if !expected[id] {
				more[id] = true
			}
		}
		if len(more) > s.asked || len(more) < s.more {
			j.breaks("each instant of a schedule becomes one timer", "%s has %d runs more than it has instants, after %d calls, of which %d were answered",
				s.name, len(more), s.asked, s.more)
		}
	}
}

// overlaps reports whether an instant may have no run: the timer of an earlier one existed when it came,
// or may have. Of those that wait for it the last one is fired.
func (j *judge) overlaps(s *series, at time.Time) bool {
	if s.overlap == recurring.OverlapAllow {
		return false
	}
	last := at.Add(s.every).After(s.until)
	if s.overlap == recurring.OverlapQueue && last && s.gone == nil {
		return false
	}
	if j.disturbed(s.start, at) {
		return true
	}
	begun, over := map[string]bool{}, map[string]time.Time{}
	for _, r := range j.runs[s.name] {
		begun[r.subject] = begun[r.subject] || r.from.Before(at.Add(settling))
		over[r.subject] = r.settled().Add(settling)
	}
	for subject := range begun {
		if begun[subject] && !over[subject].Before(at) {
			return true
		}
	}
	return false
}

// judgeOverlap checks that no run begins while the timer of an earlier one exists, where the schedule
// says so: all handlers of that one have ended, and none begins later.
func (j *judge) judgeOverlap(s *series) {
	if s.overlap == recurring.OverlapAllow || s.asked > 0 { // a run in addition does not wait
		return
	}
	runs := j.runs[s.name]
	for i, r := range runs {
		for _, next := range runs[i+1:] {
			if next.subject != r.subject && next.from.Before(j.over(r)) {
				j.breaks("runs do not overlap", "%s runs %s at %v beside %s of %s from %v to %v",
					next.at, idOf(next.subject), clock(next.from), idOf(r.subject), r.at, clock(r.from), clock(j.over(r)))
			}
			if next.subject == r.subject && slices.ContainsFunc(runs[i+1:], func(o *run) bool { return o.subject != r.subject && o.from.Before(next.from) }) {
				j.breaks("runs do not overlap", "%s runs %s again at %v, after another run of its schedule", next.at, idOf(r.subject), clock(next.from))
			}
		}
	}
}
