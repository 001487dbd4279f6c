package fleet

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

var (
	fleetSeed   = flag.Uint64("fleet.seed", 5, "the seed of the first plan: keys with runs; Redis loses writes in that of 7")
	fleetRuns   = flag.Int("fleet.runs", 3, "how many plans")
	fleetOps    = flag.Int("fleet.ops", 60, "operations of a plan")
	fleetFail   = flag.Int("fleet.failures", 1, "plans that break a promise after which no more are drawn")
	fleetKeep   = flag.String("fleet.keep", "", "the numbers of the operations to run of each plan, such as 3,14; empty: all")
	fleetTries  = flag.Int("fleet.tries", 1, "how often each plan is run at most, until it breaks a promise")
	fleetShrink = flag.Int("fleet.shrink", 0, "how often a smaller plan is run at most, to see whether it breaks the same promise; 0: plans are not shrunk")
	fleetCuts   = flag.Int("fleet.cuts", 60, "how many smaller plans are tried at most")
	fleetAll    = flag.Bool("fleet.v", false, "print what happened")
)

// noLog drops what go-redis logs about connections that break.
type noLog struct{}

func (noLog) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(noLog{})
	redistest.Main(m)
}

// TestFleet runs plans. One that breaks a promise is printed with its seed and its trace, and shrunk
// if that is wanted.
func TestFleet(t *testing.T) {
	t.Parallel()
	failures := 0
	for i := range *fleetRuns {
		p := Draw(*fleetSeed+uint64(i), *fleetOps, nil)
		if *fleetKeep != "" {
			kept, err := p.Keep(*fleetKeep)
			require.NoError(t, err)
			p = kept
		}
		var r Result
		for range *fleetTries {
			if r = runOne(t, p); len(r.Broken) > 0 {
				break
			}
		}
		r.Report(t, p, *fleetAll)
		if len(r.Broken) > 0 {
			if *fleetShrink > 0 {
				shrink(t, p, r)
			}
			if failures++; failures >= *fleetFail {
				return
			}
		}
	}
}

func runOne(t *testing.T, p *Plan) (r Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { r = Run(t.Context(), p) })
	return r
}

// shrink prints the smallest plan that breaks the same promise in one of some runs, and how to run it.
func shrink(t *testing.T, p *Plan, broken Result) {
	t.Helper()
	say := func(small *Plan) { // at once, because a log of a test appears at its end
		_, _ = fmt.Fprintf(os.Stdout, "%d of %d operations break %q in one of %d runs: go test ./internal/simulate/fleet -run '^TestFleet$' -fleet.seed %d -fleet.runs 1 -fleet.ops %d -fleet.tries %d -fleet.keep %s\n",
			len(small.Ops), len(p.Ops), broken.Broken[0].Promise, *fleetShrink, p.Seed, *fleetOps, 4**fleetShrink, small.Kept()) // the search goes on
	}
	small := Shrink(p, *fleetCuts, func(p *Plan) bool {
		for range *fleetShrink {
			if runOne(t, p).Breaks(broken) {
				return true
			}
		}
		return false
	}, say)
	say(small)
	t.Logf("%v", small)
}

// A plan that two operations break is shrunk to these, and can be drawn again.
func TestPlanShrinksToWhatBreaksIt(t *testing.T) {
	t.Parallel()
	p := Draw(7, 200, nil)
	has := func(p *Plan, n int) bool {
		return slices.ContainsFunc(p.Ops, func(o Op) bool { return o.Number == n })
	}
	said := ""
	fails := func(p *Plan) bool { return has(p, 17) && has(p, 171) }
	say := func(p *Plan) { said = p.Kept() }
	small := Shrink(p, 1000, fails, say)
	require.Equal(t, "17,171", small.Kept())
	require.Equal(t, "17,171", said)
	require.Equal(t, p.Calm, small.Calm)
	again, err := Draw(7, 200, nil).Keep(small.Kept())
	require.NoError(t, err)
	require.Equal(t, small.String(), again.String())
	for _, wrong := range []string{"200", "x", "1,,2"} {
		_, err = p.Keep(wrong)
		require.ErrorContains(t, err, "want numbers of the plan")
	}
}

// A search ends after so many tries, with the smallest plan that is known, which was printed.
func TestShrinkingIsBounded(t *testing.T) {
	t.Parallel()
	p, tries, said := Draw(7, 200, nil), 0, ""
	small := Shrink(p, 10, func(p *Plan) bool {
		tries++
		return slices.ContainsFunc(p.Ops, func(o Op) bool { return o.Number == 17 })
	}, func(p *Plan) { said = p.Kept() })
	require.Equal(t, 10, tries)
	require.Equal(t, said, small.Kept())
	require.Less(t, len(small.Ops), len(p.Ops)/10)
	require.NotEqual(t, "17", small.Kept())
}

// A plan is the same for a seed, what happens in it is not.
func TestSameSeedSamePlan(t *testing.T) {
	t.Parallel()
	plan := Draw(7, 200, nil).String()
	require.Equal(t, plan, Draw(7, 200, nil).String())
	require.NotEqual(t, plan, Draw(8, 200, nil).String())
}

// Each kind of operation is drawn soon, and faults only where there may be some.
func TestPlansHaveAllOperations(t *testing.T) {
	t.Parallel()
	drawn := map[string]bool{}
	for seed := range uint64(20) {
		p := Draw(seed, 90, &Outbox{})
		for i, o := range p.Ops {
			drawn[o.kind.name] = true
			require.False(t, o.kind.fault && i >= p.calm(90))
		}
	}
	require.False(t, slices.ContainsFunc(kinds, func(k kind) bool { return !drawn[k.name] }))
}
