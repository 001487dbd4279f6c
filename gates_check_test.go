package wakebell_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
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

// history is what all processes recorded.
type history struct {
	turns   []held // by fence
	tickets map[uint64]span
	wrote   []write
	refused int
}

// never is the end of a turn whose end no process observed.
const never = math.MaxInt64

// order sorts the turns by fence. A turn whose end no process observed ended at the
// latest when the next one began.
func (h *history) order() {
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

func (h *history) operations() []porcupine.Operation {
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

// faults returns all violations of a gate's promises.
func (h *history) faults() []string {
	h.order()
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
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
	return append(faults, h.outOfOrder()...)
}

// outOfOrder returns tickets that were overtaken. If a ticket was answered before
// another was requested, it has the lower fence.
func (h *history) outOfOrder() []string {
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

// staleWrites returns the writes that the guard accepted after a newer one.
func (h *history) staleWrites() []string {
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

// The checks find planted faults.
func TestTheHistoryChecksFindFaults(t *testing.T) {
	t.Parallel()
	turn := func(fence uint64, asked, got, live, freed int64) held {
		return held{fence: fence, got: span{asked, got}, live: live, freed: span{live, freed}, known: true}
	}
	good := func() *history {
		return &history{
			turns:   []held{turn(1, 0, 10, 20, 22), turn(2, 5, 25, 30, 31), turn(3, 5, 40, 50, 51)},
			tickets: map[uint64]span{1: {0, 2}, 2: {5, 6}, 3: {7, 8}},
			wrote:   []write{{1, span{11, 12}}, {2, span{26, 27}}},
		}
	}
	require.Empty(t, good().faults())
	require.Empty(t, good().staleWrites())

	overlap := good()
	overlap.turns[1].got.to = 15
	require.NotEmpty(t, overlap.faults())

	twice := good()
	twice.turns[2].fence = 2
	require.NotEmpty(t, twice.faults())

	backwards := good()
	backwards.turns[0].fence, backwards.turns[1].fence = 2, 1
	require.NotEmpty(t, backwards.faults())

	unfair := good()
	unfair.tickets[2], unfair.tickets[3] = span{7, 8}, span{5, 6}
	require.NotEmpty(t, unfair.faults())

	stale := good()
	stale.wrote = append(stale.wrote, write{1, span{28, 29}})
	require.NotEmpty(t, stale.staleWrites())

	expired := good()
	expired.turns[0].known = false
	expired.turns[0].freed.to = never
	require.Empty(t, expired.faults())
}
