package fleet

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/wakebell/wakebell/internal/simulate"
)

// Shrink returns the plan with as few operations and faults as fail, or the smallest one that is known
// after a number of tries. fails reports whether a plan does; because a plan that breaks a promise may
// hold it in the next run, it should run a plan several times. say is called with each smaller plan that
// fails. The number of nodes and clients stays: it decides what operations are about.
func Shrink(p *Plan, tries int, fails func(*Plan) bool, say func(*Plan)) *Plan {
	smaller := *p
	simulate.Fewest(p.Ops, func(ops []Op) ([]Op, bool) {
		with := *p
		with.Ops = ops
		if tries--; tries < 0 || !fails(&with) {
			return nil, false
		}
		smaller = with
		say(&with)
		return ops, true
	})
	return &smaller
}

// Keep returns the plan with those operations alone whose numbers a text has, as Kept returns it.
func (p *Plan) Keep(numbers string) (*Plan, error) {
	kept := *p
	kept.Ops = nil
	for text := range strings.SplitSeq(numbers, ",") {
		n, err := strconv.Atoi(text)
		i := slices.IndexFunc(p.Ops, func(o Op) bool { return o.Number == n })
		if err != nil || i < 0 {
			return nil, fmt.Errorf("keep operation %q: want numbers of the plan, such as 3,14", text)
		}
		kept.Ops = append(kept.Ops, p.Ops[i])
	}
	return &kept, nil
}

// Kept returns the numbers of the operations that are left.
func (p *Plan) Kept() string {
	var all []string
	for _, o := range p.Ops {
		all = append(all, strconv.Itoa(o.Number))
	}
	return strings.Join(all, ",")
}

// Breaks reports whether a run has broken the promise that another one has broken first.
func (r Result) Breaks(like Result) bool {
	return slices.ContainsFunc(r.Broken, func(b Broken) bool { return b.Promise == like.Broken[0].Promise })
}
