package simulate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Shrinking looks for the smallest plan that breaks an invariant.
type Shrinking struct {
	Run    func(*Plan) Result
	Say    func(Shrunk) // with each smaller plan that breaks it, so that nothing is lost if the search is interrupted
	Budget int          // events of all runs, after which no further one begins; the machine's speed has no part in it
}

// Shrunk is the smallest plan that is known, and what the search for it has taken.
type Shrunk struct {
	Plan          *Plan
	Tries, Events int
}

func (s Shrunk) String() string {
	return fmt.Sprintf("%d operations, %d of them faults, after %d tries and %d events: -simulate.keep %s", len(s.Plan.Ops), s.Plan.faults(), s.Tries, s.Events, s.Plan.Kept())
}

// shrinker is the state of a search.
type shrinker struct {
	Shrinking
	Shrunk
	broken Result // that of the plan
}

// Shrink returns the plan with as few operations, and as little loss, as break the same
// invariant.
func (s Shrinking) Shrink(p *Plan, broken Result) Shrunk {
	k := &shrinker{Shrinking: s, Shrunk: Shrunk{Plan: p}, broken: broken}
	k.cutTail()
	k.calmer()
	k.Plan.Ops = Fewest(k.Plan.Ops, func(ops []Op) ([]Op, bool) {
		failed := k.try(func(p *Plan) { p.Ops = ops })
		return k.Plan.Ops, failed
	})
	k.calmer() // a few operations may not need what many did
	return k.Shrunk
}

// cutTail leaves out what comes after the violation, which has no part in it but for the instant at
// which all becomes calm.
func (k *shrinker) cutTail() {
	if done := k.broken.Done; done < len(k.Plan.Ops) {
		k.try(func(p *Plan) { p.Ops = p.Ops[:done] })
	}
}

// calmer leaves out losses, repetitions and all nodes but one.
func (k *shrinker) calmer() {
	for _, what := range causes {
		if !slices.Contains(k.Plan.Without, what) {
			k.try(func(p *Plan) { p.leaveOut(what) })
		}
	}
}

// causes are what a plan can be without, beside operations.
var causes = []string{"loss", "repeat", "nodes"}

func (p *Plan) leaveOut(what string) {
	switch p.Without = append(slices.Clone(p.Without), what); what {
	case "loss":
		p.Loss = 0
	case "repeat":
		p.Repeat = 0
	case "nodes":
		p.Nodes = 1
	}
}

// try runs a smaller plan, and reports whether it breaks the invariant. It gives up a run that takes
// longer than the smallest one that breaks it, and so does not wait until all is at rest.
func (k *shrinker) try(change func(*Plan)) bool {
	if k.Events >= k.Budget {
		return false
	}
	smaller := *k.Plan
	change(&smaller)
	smaller.limit = k.broken.Events*5/4 + 500
	r := k.Run(&smaller)
	k.Tries, k.Events = k.Tries+1, k.Events+r.Events
	if r.Broken == nil || r.Broken.Invariant != k.broken.Broken.Invariant {
		return false
	}
	smaller.limit = 0
	k.Plan, k.broken = &smaller, r
	k.Say(k.Shrunk)
	k.cutTail()
	return true
}

// Fewest leaves out halves of a list, quarters and so on down to single elements, until it can do
// without none of them. try reports whether a shorter list fails, and returns the one to go on with,
// which may be shorter still.
func Fewest[T any](list []T, try func([]T) ([]T, bool)) []T {
	for size := max(len(list)/2, 1); size > 0; {
		before := len(list)
		for from := 0; from < len(list); {
			fewer, failed := try(slices.Delete(slices.Clone(list), from, min(from+size, len(list))))
			if failed {
				list = fewer
			} else {
				from += size
			}
		}
		if size > 1 || len(list) == before {
			size /= 2
		}
	}
	return list
}

// faults returns how many operations are faults.
func (p *Plan) faults() (n int) {
	for _, o := range p.Ops {
		switch o.kind.drawn {
		case faulty, outages, losses, clocks, damages:
			n++
		}
	}
	return n
}

// Kept returns the numbers of the operations that are left, and what the plan is without.
func (p *Plan) Kept() string {
	var all []string
	for _, o := range p.Ops {
		all = append(all, strconv.Itoa(o.Number))
	}
	return strings.Join(append(all, p.Without...), ",")
}

// Keep returns the plan with those operations alone, and without those causes, which a text has as Kept
// returns it.
func (p *Plan) Keep(text string) (*Plan, error) {
	kept := *p
	kept.Ops = nil
	for what := range strings.SplitSeq(text, ",") {
		if slices.Contains(causes, what) {
			kept.leaveOut(what)
			continue
		}
		n, err := strconv.Atoi(what)
		if err != nil || n < 0 || n >= len(p.Ops) {
			return nil, fmt.Errorf("keep %q: want numbers of operations of the plan, and %s, such as 3,14,loss", what, strings.Join(causes, ", "))
		}
		kept.Ops = append(kept.Ops, p.Ops[n])
	}
	return &kept, nil
}
