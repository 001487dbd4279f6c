package simulate

import (
	"flag"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var (
	simulateSeed = flag.Uint64("simulate.seed", 1, "the seed of the first plan")
	simulateRuns = flag.Int("simulate.runs", 5, "how many plans, if not for a time")
	simulateFor  = flag.Duration("simulate.for", 0, "for how long plans are drawn")
	simulateOps  = flag.Int("simulate.ops", 150, "operations of a plan")
	simulateAll  = flag.Bool("simulate.v", false, "print what happened")
)

// TestSimulate runs plans. One that breaks an invariant is shrunk, and printed with its seed.
func TestSimulate(t *testing.T) {
	t.Parallel()
	began, ops, exchanges, scheduled, delivered := time.Now(), 0, 0, 0, 0
	virtual := time.Duration(0)
	for n := 0; n < *simulateRuns || time.Since(began) < *simulateFor; n++ {
		plan := Draw(*simulateSeed+uint64(n), *simulateOps)
		r := runOne(t, plan)
		if r.Broken != nil {
			report(t, plan, r)
			return
		}
		ops, exchanges, scheduled, delivered, virtual = ops+r.Done, exchanges+r.Exchanges, scheduled+r.Scheduled, delivered+r.Delivered, virtual+r.Virtual
	}
	t.Logf("%d operations, %d exchanges, %d timers, %d deliveries, %v of virtual time, in %v", ops, exchanges, scheduled, delivered, virtual, time.Since(began))
}

func runOne(t *testing.T, plan *Plan) (r Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { r = Run(t.Context(), plan, *simulateAll) })
	return r
}

func report(t *testing.T, plan *Plan, r Result) {
	t.Helper()
	small := Shrink(plan, func(p *Plan) bool {
		again := runOne(t, p)
		return again.Broken != nil && again.Broken.Invariant == r.Broken.Invariant
	})
	var traced Result
	synctest.Test(t, func(t *testing.T) { traced = Run(t.Context(), small, true) })
	t.Fatalf("seed %d, %d nodes, loss %v, repeat %v, %+v\n%s", small.Seed, small.Nodes, small.Loss, small.Repeat, small.Settings, strings.Join(traced.Trace, "\n"))
}

// TestSameSeedSameTrace runs plans twice: the same things happen, to the byte.
func TestSameSeedSameTrace(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		plan := Draw(seed+1, *simulateOps)
		first, again := runOne(t, plan), runOne(t, plan)
		if first.Hash != again.Hash {
			t.Fatalf("seed %d: %x, then %x", seed, first.Hash, again.Hash)
		}
	}
}
