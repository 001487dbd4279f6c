// Package pairs counts which operations have met in drawn runs: how often one followed another
// on the same timer or key. Models and the simulation report the rarest pairs, and draw more of
// them.
package pairs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Pair is an operation and the one after it on the same subject.
type Pair [2]string

// Counts has how often each pair was counted.
type Counts map[Pair]int

// Run is a run whose operations are added in their order.
type Run struct {
	last map[string]string // by subject
	seen map[Pair]int
}

// NewRun returns a run without operations.
func NewRun() *Run { return &Run{map[string]string{}, map[Pair]int{}} }

// Add adds an operation that concerns subjects, as timers and keys. It counts once with each
// different operation that was the last one of a subject.
func (r *Run) Add(name string, subjects ...string) {
	before := map[string]bool{}
	for _, subject := range subjects {
		if last, known := r.last[subject]; known && !before[last] {
			before[last] = true
			r.seen[Pair{last, name}]++
		}
		r.last[subject] = name
	}
}

// Count adds the pairs of a run.
func (c Counts) Count(r *Run) {
	for pair, n := range r.seen {
		c[pair] += n
	}
}

// Worth is how much a run adds: more for each of its pairs that was counted seldom.
func (c Counts) Worth(r *Run) (worth float64) {
	for pair := range r.seen {
		worth += 1 / float64(1+c[pair])
	}
	return worth
}

// Rarest describes the n pairs of names that were counted least.
func (c Counts) Rarest(names []string, n int) string {
	var all []Pair
	for _, a := range names {
		for _, b := range names {
			all = append(all, Pair{a, b})
		}
	}
	slices.SortStableFunc(all, func(a, b Pair) int { return cmp.Compare(c[a], c[b]) })
	var text []string
	for _, pair := range all[:min(n, len(all))] {
		text = append(text, fmt.Sprintf("%s, %s: %d", pair[0], pair[1], c[pair]))
	}
	return strings.Join(text, "; ")
}
