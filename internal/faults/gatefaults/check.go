package gatefaults

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// span is an interval of the machine's clock, in ns.
type span struct{ from, to int64 }

// held is a turn as its process observed it.
type held struct {
	fence uint64
	got   span  // requested and acquired
	live  int64 // the process had the turn at least until this instant
	good  int64 // the latest end of the lease, if the process survives
	freed span  // when the process released it, or when it ended
	known bool  // the release was confirmed
}

// write is a write that the guard accepted.
type write struct {
	fence uint64
	span
}

// History is what all processes recorded.
type History struct {
	// Stuck are the participants that got no turn within a minute after the last fault.
	Stuck []int

	turns   []held   // by fence
	twice   []uint64 // fences that were granted again
	tickets map[uint64]span
	wrote   []write
	refused int
}

// never is the end of a turn whose end no process observed.
const never = math.MaxInt64

// order sorts the turns by fence. A turn whose end no process observed ended at the
// latest when the next one began.
func (h *History) order() {
	slices.SortFunc(h.turns, func(a, b held) int { return cmp.Compare(a.fence, b.fence) })
	for i := range h.turns {
		if t := &h.turns[i]; !t.known && i+1 < len(h.turns) {
			t.freed.to = max(t.freed.from, h.turns[i+1].got.to)
		}
	}
}

// lock is porcupine's model of a lock with fencing tokens.
type (
	lockState struct{ holder, last uint64 }
	lockInput struct {
		what  string // acquire, release, expire
		fence uint64
	}
)

var lock = porcupine.Model{
	Init: func() any { return lockState{} },
	Step: func(state, input, _ any) (bool, any) {
		s, in := state.(lockState), input.(lockInput)
		switch {
		case in.what == "acquire":
			return s.holder == 0 && in.fence > s.last, lockState{in.fence, in.fence}
		case in.what == "release":
			return s.holder == in.fence, lockState{0, s.last}
		case s.holder == in.fence: // its lease expires
			return true, lockState{0, s.last}
		default:
			return true, s
		}
	},
	DescribeOperation: func(input, _ any) string { return fmt.Sprint(input) },
}

func (h *History) operations() []porcupine.Operation {
	var all []porcupine.Operation
	for i, t := range h.turns {
		what := "expire"
		if t.known {
			what = "release"
		}
		all = append(all,
			porcupine.Operation{ClientId: i, Input: lockInput{"acquire", t.fence}, Call: t.got.from, Return: t.got.to},
			porcupine.Operation{ClientId: i, Input: lockInput{what, t.fence}, Call: t.freed.from, Return: t.freed.to})
	}
	return all
}

// Turns returns the number of turns.
func (h *History) Turns() int { return len(h.turns) }

// Tickets returns the number of tickets that were answered.
func (h *History) Tickets() int { return len(h.tickets) }

// Writes returns how many writes the guard let through, and how many it refused.
func (h *History) Writes() (accepted, refused int) { return len(h.wrote), h.refused }

// Overlaps returns violations of exclusion and of growing fences: turns that overlapped,
// fences that were granted twice, and a history that no lock has.
func (h *History) Overlaps() []string {
	h.order()
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for _, fence := range h.twice {
		fault("fence %d was granted twice", fence)
	}
	for i := 1; i < len(h.turns); i++ {
		a, b := h.turns[i-1], h.turns[i]
		if a.fence == b.fence {
			fault("fence %d was granted twice", a.fence)
		}
		if b.got.to < a.live && b.live > b.got.to {
			fault("turn %d began %v before turn %d ended", b.fence, time.Duration(a.live-b.got.to), a.fence)
		}
	}
	result := porcupine.CheckOperationsTimeout(lock, h.operations(), time.Minute)
	if result != porcupine.Ok {
		fault("the history violates the lock model: %v", result)
	}
	return faults
}

// OutOfOrder returns tickets that were overtaken. If a ticket was answered before
// another was requested, it has the lower fence.
func (h *History) OutOfOrder() []string {
	type queued struct {
		fence uint64
		span
	}
	var list []queued
	for _, t := range h.turns {
		if s, ok := h.tickets[t.fence]; ok {
			list = append(list, queued{t.fence, s})
		}
	}
	slices.SortFunc(list, func(a, b queued) int { return cmp.Compare(a.from, b.from) })
	answered := slices.Clone(list)
	slices.SortFunc(answered, func(a, b queued) int { return cmp.Compare(a.to, b.to) })
	var faults []string
	var highest uint64
	next := 0
	for _, q := range list {
		for ; next < len(answered) && answered[next].to < q.from; next++ {
			highest = max(highest, answered[next].fence)
		}
		if q.fence < highest {
			faults = append(faults, fmt.Sprintf("ticket %d overtook %d, which was answered before", q.fence, highest))
		}
	}
	return faults
}

// StaleWrites returns the writes that the guard accepted after a newer one.
func (h *History) StaleWrites() []string {
	var faults []string
	for _, x := range h.wrote {
		for _, y := range h.wrote {
			if x.to < y.from && y.fence < x.fence {
				faults = append(faults, fmt.Sprintf("%d was written after %d", y.fence, x.fence))
			}
		}
	}
	return faults
}
