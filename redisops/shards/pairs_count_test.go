package shards

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// pairCounts counts how often an operation followed another on the same timers.
type pairCounts map[[2]string]int

// count counts the pairs of a plan: an operation and the last one before it that concerns
// the same timer, the same key, or all timers.
func (c pairCounts) count(p plan) {
	last := map[string]string{} // by Redis and timer or key
	for _, st := range p.steps {
		subjects := []string{st.id(), "key " + modelKey(st.id())}
		if st.operation.all {
			subjects = nil
			for _, id := range modelTimers {
				subjects = append(subjects, id, "key "+modelKey(id))
			}
		}
		seen := map[[2]string]bool{}
		for _, subject := range subjects {
			at := fmt.Sprint(st.place, subject)
			if before, pair := last[at], [2]string{last[at], st.operation.name}; before != "" && !seen[pair] {
				seen[pair] = true
				c[pair]++
			}
			last[at] = st.operation.name
		}
	}
}

// rarest returns the pairs that were counted least.
func (c pairCounts) rarest(n int) string {
	type pair struct {
		names [2]string
		count int
	}
	var all []pair
	for _, a := range operations {
		for _, b := range operations {
			names := [2]string{a.name, b.name}
			all = append(all, pair{names, c[names]})
		}
	}
	slices.SortStableFunc(all, func(a, b pair) int { return cmp.Compare(a.count, b.count) })
	var text []string
	for _, p := range all[:n] {
		text = append(text, fmt.Sprintf("%s, %s: %d", p.names[0], p.names[1], p.count))
	}
	return strings.Join(text, "; ")
}
