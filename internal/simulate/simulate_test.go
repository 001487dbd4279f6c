//go:build !race

package simulate

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/pairs"
)

var (
	simulateSeed = flag.Uint64("simulate.seed", 1, "the seed of the first plan")
	simulateRuns = flag.Int("simulate.runs", 1, "how many plans at least; .ci/run runs more of them")
	simulateJobs = flag.Int("simulate.jobs", 1, "plans that run at once; their order and traces stay the same")
	simulateFor  = flag.Duration("simulate.for", 0, "for how long more plans are drawn")
	simulateOps  = flag.Int("simulate.ops", 150, "operations of a plan")
	simulateRare = flag.Int("simulate.rare", 1, "of so many seeds, the one is run whose plan has the rarest pairs of operations")
	simulateOf   = flag.String("simulate.shape", "", "the shape of all plans: dense, days or many; empty: drawn by the seed")
	simulateAll  = flag.Bool("simulate.v", false, "print what happened")
	simulateFail = flag.Int("simulate.failures", 1, "plans that break an invariant after which no more are drawn")
	simulateKeep = flag.String("simulate.keep", "", "the numbers of the operations to run of each plan, and what it is without, such as 3,14,loss; empty: all")
	shrinkEvents = flag.Int("simulate.shrink", 400_000, "events of all runs of smaller plans, after which shrinking ends: about two minutes on a core")
	noShrinking  = flag.Bool("simulate.noshrink", false, "print the seed of a plan that breaks an invariant, not its shortest version")
)

// TestSimulate runs plans. One that breaks an invariant is shrunk, and printed with its seed.
func TestSimulate(t *testing.T) {
	t.Parallel()
	longer, cancel := context.WithTimeout(t.Context(), *simulateFor) // over at once in the suite
	defer cancel()
	t.Logf("plans from seed %d on", *simulateSeed)
	var all Result
	met, began, failures := pairs.Counts{}, time.Now(), 0
	for n := 0; n < *simulateRuns || longer.Err() == nil; {
		plans := make([]*Plan, max(*simulateJobs, 1))
		for i := range plans {
			plans[i] = choose(met, *simulateSeed+uint64((n+i)**simulateRare))
			if *simulateKeep != "" {
				kept, err := plans[i].Keep(*simulateKeep)
				require.NoError(t, err)
				plans[i] = kept
			}
		}
		for i, r := range runAll(t, plans) {
			n++
			if r.Broken != nil {
				t.Logf("plan %d, seed %d, breaks %q after %v", n, plans[i].Seed, r.Broken.Invariant, time.Since(began).Round(100*time.Millisecond))
				report(t, plans[i], r)
				if failures++; failures >= *simulateFail {
					return
				}
				r.Trace = nil
			}
			for _, line := range r.Trace {
				t.Log(line)
			}
			if all.add(r); n%10 == 0 {
				t.Logf("%d plans: %d operations, %d timers, %v", n, all.Done, all.Scheduled, all.Virtual)
			}
		}
	}
	t.Logf("rarest pairs: %s", met.Rarest(names(), 10))
	t.Logf("%d operations, %d exchanges, %d timers, %d deliveries, %d runs of schedules, %d messages, %d turns, %d deliveries of a topic that moves, %d joins, %d reminders, %v of virtual time; the latest by %v", all.Done, all.Exchanges, all.Scheduled, all.Delivered, all.Fired, all.Messages, all.Turns, all.Travelled, all.Joined, all.Reminded, all.Virtual, all.Latest)
}

// choose draws plans from a seed on, and returns the one whose pairs have met least.
func choose(met pairs.Counts, seed uint64) (chosen *Plan) {
	worth := -1.0
	for i := range uint64(*simulateRare) {
		plan := draw(seed + i)
		if w := met.Worth(plan.Pairs()); w > worth {
			chosen, worth = plan, w
		}
	}
	met.Count(chosen.Pairs())
	return chosen
}

func draw(seed uint64) *Plan {
	if shape, ok := Shapes[*simulateOf]; ok {
		return DrawShape(seed, *simulateOps, shape)
	}
	return Draw(seed, *simulateOps)
}

func names() (all []string) {
	for i := range kinds {
		all = append(all, kinds[i].name)
	}
	return all
}

// add adds the counts of another run.
func (r *Result) add(other Result) {
	r.Done, r.Exchanges = r.Done+other.Done, r.Exchanges+other.Exchanges
	r.Scheduled, r.Delivered, r.Virtual = r.Scheduled+other.Scheduled, r.Delivered+other.Delivered, r.Virtual+other.Virtual
	r.Messages, r.Turns = r.Messages+other.Messages, r.Turns+other.Turns
	r.Travelled, r.Joined, r.Reminded = r.Travelled+other.Travelled, r.Joined+other.Joined, r.Reminded+other.Reminded
	r.Fired, r.Latest = r.Fired+other.Fired, max(r.Latest, other.Latest)
}

// runAll runs plans at the same time.
func runAll(t *testing.T, plans []*Plan) []Result {
	t.Helper()
	if len(plans) == 1 {
		return []Result{runOne(t, plans[0])}
	}
	results := make([]Result, len(plans))
	t.Run("plans", func(t *testing.T) {
		for i, plan := range plans {
			t.Run(fmt.Sprint("seed ", plan.Seed), func(t *testing.T) {
				t.Parallel()
				results[i] = runOne(t, plan)
			})
		}
	})
	return results
}

func runOne(t *testing.T, plan *Plan) (r Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { r = Run(t.Context(), plan, *simulateAll) })
	return r
}

func report(t *testing.T, plan *Plan, r Result) {
	t.Helper()
	if *noShrinking {
		t.Errorf("seed %d: %v\n%s", plan.Seed, r.Broken, strings.Join(r.Trace, "\n")) // what happened with -simulate.v
		return
	}
	small := Shrinking{
		Run: func(p *Plan) Result { return runOne(t, p) },
		Say: func(s Shrunk) { sayShrunk(os.Stdout, s) }, Budget: *shrinkEvents,
	}.Shrink(plan, r)
	var traced Result
	synctest.Test(t, func(t *testing.T) { traced = Run(t.Context(), small.Plan, true) })
	t.Errorf("%v\nseed %d, %v, %d nodes, loss %v, repeat %v, %+v\n%s", small, small.Plan.Seed, small.Plan.Shape, small.Plan.Nodes, small.Plan.Loss, small.Plan.Repeat, small.Plan.Settings, strings.Join(traced.Trace, "\n"))
}

// sayShrunk prints the smallest plan that is known, and how to run it: at once, because a log of a test
// appears at its end.
func sayShrunk(to io.Writer, s Shrunk) {
	shape := ""
	if *simulateOf != "" {
		shape = " -simulate.shape " + *simulateOf
	}
	_, _ = fmt.Fprintf(to, "shrunk to %v -simulate.seed %d -simulate.ops %d%s\n", s, s.Plan.Seed, *simulateOps, shape) // the search goes on
}

// TestFaultsConcernNodesAndClients checks that what Redis does happens in plans, and that nodes and
// clients meet it.
func TestFaultsConcernNodesAndClients(t *testing.T) {
	t.Parallel()
	for seed, lines := range map[uint64][]string{
		14:  {"op restart Redis", " loses a request of ", ": the request is lost", "op refuse commands", " refuses a request of ", " is refused: ", " a replica takes over"},
		4:   {" the clock of Redis steps by -1m0s", " the clock of Redis steps by 3s"},
		34:  {" a replica takes over", "the reminder n1 arrives"},
		124: {" lost: the payload of ", " lost: the place of ", " lost: the type of ", " has its type again"},
		204: {" lost: timers_once:", " lost: q::processing:lease_deadlines of ", " lost: q::deduplication::"},
	} {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			var r Result
			synctest.Test(t, func(t *testing.T) { r = Run(t.Context(), Draw(seed, 150), true) })
			require.Nil(t, r.Broken)
			trace := strings.Join(r.Trace, "\n")
			for _, line := range lines {
				require.Contains(t, trace, line)
			}
		})
	}
}

// TestSameSeedSameTrace runs plans twice: the same things happen, to the byte.
func TestSameSeedSameTrace(t *testing.T) {
	t.Parallel()
	plans := 2
	if testing.Short() {
		plans = 1
	}
	for n := range plans {
		seed := *simulateSeed + uint64(n)
		plan := Draw(seed, *simulateOps)
		first, again := runOne(t, plan), runOne(t, plan)
		if first.Hash != again.Hash {
			t.Fatalf("seed %d: %x, then %x", seed, first.Hash, again.Hash)
		}
	}
}
