package spec

import (
	"flag"
	"hash/maphash"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var large = flag.Bool("spec.large", false, "explore the large worlds")

// found is a state that was reached, and how.
type found struct {
	from int
	step Step
}

// explore visits every state that a world can reach, and returns their number. If an
// invariant is broken, it returns the steps that lead there, which are as few as possible.
func explore(w *World, most int) (states int, steps []string, err error) {
	seed := maphash.MakeSeed()
	seen := map[uint64]struct{}{}
	var all []found
	layer := []State{w.Begin()}
	ids := []int{0}
	all = append(all, found{from: -1})
	seen[maphash.Comparable(seed, layer[0])] = struct{}{}
	for len(layer) > 0 {
		var next []State
		var nextIDs []int
		for i, s := range layer {
			if err := w.Drain(s); err != nil {
				return len(all), path(all, ids[i], nil), err
			}
			for _, step := range w.Steps(&s) {
				after, err := w.Apply(s, step)
				if err != nil {
					return len(all), path(all, ids[i], &step), err
				}
				hash := maphash.Comparable(seed, after)
				if _, known := seen[hash]; known {
					continue
				}
				seen[hash] = struct{}{}
				all = append(all, found{ids[i], step})
				next, nextIDs = append(next, after), append(nextIDs, len(all)-1)
			}
			if most > 0 && len(all) > most {
				return len(all), nil, nil
			}
		}
		layer, ids = next, nextIDs
	}
	return len(all), nil, nil
}

func path(all []found, at int, last *Step) (steps []string) {
	if last != nil {
		steps = []string{last.String()}
	}
	for ; at > 0; at = all[at].from {
		steps = append([]string{all[at].step.String()}, steps...)
	}
	return steps
}

func TestEveryStateOfSmallWorlds(t *testing.T) {
	t.Parallel()
	most := 0 // all
	if testing.Short() {
		most = 10_000
	}
	for name, w := range worlds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			states, steps, err := explore(&w, most)
			require.NoError(t, err, strings.Join(steps, "\n"))
			t.Logf("%d states", states)
		})
	}
}

// worlds are small enough for every run of the tests.
func worlds() map[string]World {
	return map[string]World{
		"lost answer":      {IDs: 1, Calls: 1, Ticks: 2, TTL: 1, Losses: 1},
		"repeat":           {IDs: 1, Calls: 1, Ticks: 2, TTL: 1, Repeats: 1},
		"crash":            {IDs: 1, Calls: 1, Ticks: 3, TTL: 1, Crashes: 1},
		"key":              {IDs: 2, Calls: 1, Ticks: 3, TTL: 1, PerKey: 1},
		"limit":            {IDs: 2, Calls: 1, Ticks: 2, TTL: 1, InFlight: 1},
		"change of layout": {IDs: 1, Calls: 1, Ticks: 1, TTL: 1, Change: true},
		"moving key":       {IDs: 2, Calls: 1, Ticks: 1, TTL: 1, PerKey: 1, Change: true},
	}
}

// TestClausesAreNeeded takes each clause of the specification out: then an invariant is
// broken. So the invariants guard what the clauses are for.
func TestClausesAreNeeded(t *testing.T) {
	t.Parallel()
	for clause, want := range map[string]struct {
		world     World
		invariant string
	}{
		"idempotency": {World{IDs: 1, Calls: 1, Ticks: 1, TTL: 1, Losses: 1}, "once"},
		"fence":       {World{IDs: 1, Calls: 1, Ticks: 1, TTL: 1, Change: true}, "polled"},
		"running":     {World{IDs: 1, Calls: 1, Ticks: 2, TTL: 2, Change: true}, "acks count"},
		"replay":      {World{IDs: 1, Calls: 1, Ticks: 2, TTL: 2, Losses: 1}, "known"},
		"token":       {World{IDs: 1, Calls: 1, Ticks: 3, TTL: 1}, "exclusion"},
		"limit":       {World{IDs: 2, Calls: 1, Ticks: 1, TTL: 1, InFlight: 1}, "limit"},
		"key":         {World{IDs: 2, Calls: 1, Ticks: 1, TTL: 1, PerKey: 1}, "key"},
	} {
		t.Run(clause, func(t *testing.T) {
			t.Parallel()
			want.world.Without = clause
			states, steps, err := explore(&want.world, 0)
			require.Error(t, err)
			t.Logf("%d states, %v:\n%s", states, err, strings.Join(steps, "\n"))
			var broken *Broken
			require.ErrorAs(t, err, &broken)
			require.Equal(t, want.invariant, broken.Invariant)
		})
	}
}

// TestEveryStateOfLargeWorld explores two nodes, two clients, two timers of one key, a
// lost answer, a repeat, a crash and a change of the layout at once.
func TestEveryStateOfLargeWorld(t *testing.T) {
	if !*large {
		return // go test ./internal/spec -run LargeWorld -spec.large
	}
	w := World{IDs: 2, Calls: 1, Ticks: 1, TTL: 1, PerKey: 1, Losses: 1, Repeats: 1, Crashes: 1, Change: true}
	states, steps, err := explore(&w, 0)
	require.NoError(t, err, strings.Join(steps, "\n"))
	t.Logf("%d states", states)
}
