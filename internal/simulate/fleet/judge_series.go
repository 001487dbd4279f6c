package fleet

import (
	"slices"
)

// judgeSeries checks recurring schedules: each instant becomes one timer, not before it has come,
// and none is missed.
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
			if s.put == done && before && !handled {
				j.breaks("each instant of a schedule becomes one timer", "%s was not handled", id)
			}
			if s.gone != nil && s.deleted == done && at.After(s.gone.to) && len(runs) > 0 {
				j.breaks("a deleted schedule does not fire", "%s runs, and its schedule was deleted at %v", id, clock(s.gone.to))
			}
		}
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
