package fleet

import (
	"cmp"
	"slices"
)

// judgeTurns checks the turns of each gate.
func (j *judge) judgeTurns() {
	turns := slices.SortedStableFunc(slices.Values(j.record.turns), func(a, b *turn) int {
		return cmp.Or(cmp.Compare(a.gate, b.gate), a.from.Compare(b.from))
	})
	for i, t := range turns {
		for _, next := range turns[i+1:] {
			if next.gate != t.gate {
				break
			}
			if t.to.IsZero() || next.from.Before(micros(t.to)) {
				j.breaks("one turn at a time", "%s has turn %d at %s from %v, beside %s with %d, %v to %v",
					next.at, next.fence, t.gate, clock(next.from), t.at, t.fence, clock(t.from), clock(t.to))
			}
			if next.fence <= t.fence {
				j.breaks("tokens only grow", "at %s, %d comes after %d", t.gate, next.fence, t.fence)
			}
		}
	}
	for _, a := range j.record.guards {
		for _, b := range j.record.guards {
			if a.gate == b.gate && a.accepted && b.accepted && a.to.Before(b.from) && b.fence < a.fence && !j.lost(a.from, b.to) {
				j.breaks("a guard accepts no older token", "at %s, %d after %d", a.gate, b.fence, a.fence)
			}
		}
	}
}
