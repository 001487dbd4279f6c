//go:build !race

package simulate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// breaks returns what runs a plan that breaks an invariant as soon as some of its operations have
// been done, in the order of their numbers. Each operation is an event.
func breaks(after ...int) (run func(*Plan) Result, runs *int) {
	runs = new(int)
	return func(p *Plan) (r Result) {
		*runs++
		left := slices.Clone(after)
		for _, o := range p.Ops {
			r.Done, r.Events = r.Done+1, r.Events+1
			if len(left) > 0 && o.Number == left[0] {
				left = left[1:]
			}
			if len(left) == 0 {
				r.Broken = &Broken{Invariant: "fence"}
				return r
			}
		}
		return r
	}, runs
}

// A plan that two of 200 operations break is shrunk to these, each smaller plan is printed so that it can be
// drawn again, and the first one ends with the violation.
func TestShrinkKeepsWhatBreaksPlan(t *testing.T) {
	t.Parallel()
	p := Draw(20, 200)
	run, runs := breaks(17, 83)
	var said []string
	small := Shrinking{Run: run, Budget: 100_000, Say: func(s Shrunk) {
		said = append(said, s.String())
		again, err := Draw(20, 200).Keep(s.Plan.Kept())
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(s.Plan.Ops), fmt.Sprint(again.Ops))
		require.NotNil(t, run(again).Broken)
	}}.Shrink(p, run(p))
	require.Equal(t, "17,83,loss,repeat,nodes", small.Plan.Kept())
	require.Equal(t, 1, small.Plan.Nodes)
	require.Zero(t, small.Plan.Loss)
	require.Contains(t, said[0], "84 operations, ", "what comes after the violation goes first")
	require.True(t, strings.HasPrefix(said[len(said)-1], "2 operations, "), said)
	require.Less(t, *runs, 80)
	require.Len(t, p.Ops, len(Draw(20, 200).Ops), "the plan itself stays as it is")
	for _, wrong := range []string{"100000", "x", "1,,2", "-1"} {
		_, err := p.Keep(wrong)
		require.ErrorContains(t, err, "want numbers of operations of the plan")
	}
}

// A search ends when its runs have had so many events, with the best plan so far, which was printed.
func TestShrinkEndsWithinItsBudget(t *testing.T) {
	t.Parallel()
	p := Draw(20, 200)
	run, _ := breaks(17, 83, 150)
	broken := run(p)
	events, last := 0, Shrunk{}
	small := Shrinking{Budget: 500, Say: func(s Shrunk) { last = s }, Run: func(p *Plan) Result {
		require.Less(t, events, 500, "another run begins")
		r := run(p)
		events += r.Events
		return r
	}}.Shrink(p, broken)
	require.NotNil(t, last.Plan)
	require.Equal(t, last.Plan.Kept(), small.Plan.Kept())
	require.Less(t, len(small.Plan.Ops), len(p.Ops))
	require.Equal(t, events, small.Events)
}

// A smaller plan that breaks nothing is given up soon after the one that does would have ended.
func TestShrinkGivesUpLongRuns(t *testing.T) {
	t.Parallel()
	p := Draw(20, 200)
	Shrinking{Budget: 10_000, Say: func(Shrunk) {}, Run: func(p *Plan) Result {
		require.Equal(t, 750, p.limit)
		return Result{Events: 100}
	}}.Shrink(p, Result{Broken: &Broken{Invariant: "fence"}, Done: len(p.Ops), Events: 200})
	p.limit = 5
	r := runOne(t, p)
	require.Nil(t, r.Broken)
	require.Equal(t, 6, r.Events)
}
