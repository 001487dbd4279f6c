package faults

import (
	"flag"
	"math/rand/v2"
	"strings"
	"testing"
)

// changeover is the number of replacements by which a fleet runs only its second
// program. Before, both programs run together.
const changeover = 30

var programs = flag.String("faults.programs", "",
	"FROM,TO: paths of test binaries; nodes start as FROM, and more and more of those that replace them are TO; empty: this binary")

// versions are the programs of nodes that are upgraded during a scenario.
type versions struct{ from, to string }

func versionsOf(t *testing.T) versions {
	t.Helper()
	if *programs == "" {
		return versions{}
	}
	from, to, ok := strings.Cut(*programs, ",")
	if !ok {
		t.Fatalf("-faults.programs %q: want two paths with a comma between them", *programs)
	}
	return versions{from, to}
}

// next returns the program of the node that replaces another after so many trials.
func (v versions) next(rng *rand.Rand, trials int) string {
	if v.from == v.to || rng.IntN(changeover) < trials {
		return v.to
	}
	return v.from
}
