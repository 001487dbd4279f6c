package shards

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/redistest"
)

var (
	modelsFor     = flag.Duration("models.for", 0, "for how long the model draws runs; 0: a number of runs")
	modelsSeed    = flag.Uint64("models.seed", 1, "the seed of the first run of the model; the next ones have the seeds after it")
	modelsRuns    = flag.Int("models.runs", 150, "how many runs the model draws, if not for a time")
	modelsAll     = flag.Bool("models.all", false, "continue after a run that is wrong, and report each kind of fault once")
	modelsWithout = flag.String("models.without", "", "operations that the model leaves out, separated by commas")
)

// step is an operation with all that is drawn for it, so that a run can be repeated and
// shortened.
type step struct {
	operation           *operation
	target, b, c, place int
	flag                bool
}

// String returns a step as it is written in Go.
func (s step) String() string {
	return fmt.Sprintf("{%q, %d, %d, %d, %d, %v}", s.operation.name, s.target, s.b, s.c, s.place, s.flag)
}

// plan is a run of the model.
type plan struct {
	skips bool
	steps []step
}

// always is the weight from which an operation is in each run: without it little would happen.
const always = 8

// busy is how half of the runs begin: one timer of a key runs, and others wait for it.
var busy = []step{
	{operation: named("retune"), b: 1, flag: true},
	{operation: named("schedule"), target: 0, b: 1},
	{operation: named("schedule"), target: 1, b: 1},
	{operation: named("schedule"), target: 2, b: 1},
	{operation: named("claim"), b: 2, flag: true},
}

// drawPlan draws a run: a long one from an empty topic, or a short one from a busy key.
func drawPlan(seed uint64) plan {
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a run is to be repeated
	left := slices.DeleteFunc(slices.Clone(operations), func(o operation) bool {
		return slices.Contains(strings.Split(*modelsWithout, ","), o.name)
	})
	p := plan{skips: r.IntN(4) == 0}
	if len(left) == 0 {
		return p
	}
	if r.IntN(2) == 0 {
		p.steps = slices.Concat(busy, drawSteps(r, few(r, left), 12, 3))
		return p
	}
	p.steps = drawSteps(r, some(r, left), 80, []int{2, len(modelTimers)}[r.IntN(2)])
	return p
}

// few draws two to four operations, each as often, so that every pair meets where it matters.
func few(r *rand.Rand, from []operation) (drawn []*operation) {
	for range 2 + r.IntN(3) {
		drawn = append(drawn, &from[r.IntN(len(from))])
	}
	return drawn
}

// some draws about half of the operations, a quarter or an eighth, as often as their weights
// say, so that these meet often.
func some(r *rand.Rand, from []operation) (drawn []*operation) {
	one := []int{2, 4, 8}[r.IntN(3)] // in so many operations is drawn
	for i := range from {
		if o := &from[i]; o.weight >= always || r.IntN(one) == 0 {
			drawn = append(drawn, slices.Repeat([]*operation{o}, o.weight)...)
		}
	}
	return drawn
}

// drawSteps draws steps with some of the first ids.
func drawSteps(r *rand.Rand, from []*operation, n, ids int) (steps []step) {
	elsewhere := r.IntN(4) // how often of 10 something is done with the other Redis
	for range n {
		st := step{
			operation: from[r.IntN(len(from))], target: r.IntN(ids), b: r.IntN(10), c: r.IntN(2), flag: r.IntN(2) == 0,
		}
		if r.IntN(10) < elsewhere {
			st.place = 1
		}
		steps = append(steps, st)
	}
	return steps
}

// play runs a plan, and returns what is wrong with it and what has happened before.
func play(t *testing.T, server *redistest.Server, p plan) (wrong string, log []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var w *world
		defer func() {
			switch v := recover().(type) {
			case nil:
			case violation:
				wrong, log = v.text, w.log
			default:
				panic(v)
			}
		}()
		w = newWorld(t, [2]*redis.Client{bubbleClient(t, server, 0), bubbleClient(t, server, 1)}, p.skips)
		for _, st := range p.steps {
			w.pass(time.Millisecond)
			w.note("%s (Redis %d)", st.operation.name, st.place)
			st.operation.run(w, st)
			w.check()
		}
		w.note("finish")
		w.finish()
	})
	return wrong, log
}

// shorten leaves steps out of a plan as long as the same is wrong with it.
func shorten(t *testing.T, server *redistest.Server, p plan, wrong string) plan {
	t.Helper()
	kind := kindOf(wrong)
	for size := len(p.steps) / 2; size > 0; {
		left := false
		for at := 0; at < len(p.steps); {
			shorter := plan{p.skips, slices.Delete(slices.Clone(p.steps), at, min(at+size, len(p.steps)))}
			if other, _ := play(t, server, shorter); other != "" && kindOf(other) == kind {
				p, left = shorter, true
			} else {
				at += size
			}
		}
		if !left || size > 1 {
			size /= 2
		}
	}
	return p
}

var details = regexp.MustCompile(`"[^"]*"|[tubv]\d+|[-\d.]+(h|m|s|ms|µs|ns)?|~`)

// kindOf returns what is wrong without ids and numbers.
func kindOf(wrong string) string { return details.ReplaceAllString(wrong, "") }
