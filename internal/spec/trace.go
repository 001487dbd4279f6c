package spec

import (
	"cmp"
	"slices"
)

// Never is later than all instants of a trace.
const Never Instant = 1 << 30

// Unknown is an instant that an answer would have had.
const Unknown Instant = -1 << 30

// SeenKind is a kind of Seen.
type SeenKind int8

// What can be seen of a timer.
const (
	SeenCall    SeenKind = iota // a call
	SeenClaim                   // a delivery
	SeenVerdict                 // the end of a delivery
	SeenRefusal                 // a verdict that did not count
)

// Kept is the body of a timer that is written again.
const Kept = -1

// Seen is something that a log has about a timer: it happened once between From and To.
// Instants are in µs, from any instant on.
type Seen struct {
	Kind     SeenKind
	From, To Instant
	Perhaps  bool // it may not have happened at all

	// Of a call: what it was, what it has found (Unanswered: not known), and the instant
	// that it has answered, or Unknown. Then In counts from the call. Writes names the body
	// that it has written; 0: it moves the timer that is there; Kept: it writes the one that was
	// there again. Again: it may be an earlier
	// call of the same body, which takes effect once.
	Call   Kind
	Found  Found
	Due    Instant
	In     Instant
	Writes int
	Again  bool

	// Run is the number of a delivery, from 1, or Unseen. A claim has the instant of its timer, when its
	// handler got it, how often it was claimed, including this time, and failed.
	Run              int8
	Instant, Began   Instant
	Claims, Failures int8
	Body             int

	// Verdicts are those that a handler can have reached. Until Ended its lease may have been
	// extended.
	Verdicts Verdicts
	Ended    Instant
}

// Verdicts is a set of verdicts.
type Verdicts [Extend]bool

// OneOf returns the set of some verdicts.
func OneOf(some ...Verdict) (all Verdicts) {
	for _, v := range some {
		all[v] = true
	}
	return all
}

// Trace is everything that was seen of one timer, up to the end when nothing was left of it.
type Trace struct {
	World World
	Seen  []Seen
}

// most bounds the search for an order: of states, and of deliveries.
const (
	mostStates = 50_000
	// MostSeen is how much a trace may have.
	MostSeen = 126
	// Unseen is the number of deliveries that reached no handler.
	Unseen = 127
)

// reached is a state of the search: the timer, and what of the trace has happened.
type reached struct {
	state State
	body  int
	done  [2]uint64
}

// search looks for an order of what was seen.
type search struct {
	*Trace
	seen   map[reached]struct{}
	widest int // the most that has happened in an order
	stuck  reached
	bound  bool
}

// Check reports whether steps of the specification explain a trace. If none do, the error is
// a *Broken, and first is the number of the first thing seen that no order reaches. Sure is
// false if the search was given up.
func (t *Trace) Check() (first int, sure bool, err error) {
	f := &search{Trace: t, seen: map[reached]struct{}{}, widest: -1}
	if len(t.Seen) > MostSeen || f.explains(reached{}) || f.bound {
		return 0, len(t.Seen) <= MostSeen && !f.bound, nil
	}
	for i := range t.Seen {
		if !f.stuck.has(i) && !t.Seen[i].Perhaps {
			return i, true, broken("trace", "no order of the steps explains what was seen")
		}
	}
	return -1, true, broken("nothing lost", "the timer is gone, and no step has ended it")
}

func (r *reached) has(i int) bool { return r.done[i/64]&(1<<(i%64)) != 0 }
func (r *reached) count() (n int) {
	for i := range MostSeen {
		if r.has(i) {
			n++
		}
	}
	return n
}

// explains reports whether what is left of the trace can follow on a state.
func (f *search) explains(at reached) bool {
	if _, known := f.seen[at]; known || f.bound {
		return false
	}
	f.seen[at] = struct{}{}
	f.bound = len(f.seen) > mostStates
	if n := at.count(); n > f.widest {
		f.widest, f.stuck = n, at
	}
	end, next := f.open(at)
	if end && at.state.Places[Old][0].Version == 0 {
		return true
	}
	for _, i := range next {
		for _, after := range f.steps(at, i) {
			after.done[i/64] |= 1 << (i % 64)
			if f.explains(after) {
				return true
			}
		}
	}
	return slices.ContainsFunc(f.unseen(at), f.explains)
}

// open returns what may happen next, the one first that has to happen first; end: nothing has
// to happen any more.
func (f *search) open(at reached) (end bool, next []int) {
	until := Never
	end = true
	for i, s := range f.Seen {
		if !s.Perhaps && !at.has(i) {
			until, end = min(until, s.To), false
		}
	}
	for i, s := range f.Seen {
		if !at.has(i) && s.From <= until && at.state.Now <= s.To {
			next = append(next, i)
		}
	}
	if until < at.state.Now {
		return false, nil
	}
	slices.SortStableFunc(next, func(a, b int) int { return cmp.Compare(f.Seen[a].To, f.Seen[b].To) })
	return end, next
}

// instants returns when something may happen in a state, as far as that makes a difference:
// as early as it can, and when the timer becomes due or its lease has expired.
func (f *search) instants(at *reached, s *Seen) (all []Instant) {
	t := &at.state.Places[Old][0]
	for _, i := range []Instant{at.state.Now, t.Due, t.Due - f.World.Ahead} {
		if i = max(i, s.From, at.state.Now); i <= s.To && !slices.Contains(all, i) {
			all = append(all, i)
		}
	}
	return all
}

// steps returns the states after something that was seen.
func (f *search) steps(at reached, i int) (all []reached) {
	s := &f.Seen[i]
	for _, now := range f.instants(&at, s) {
		after := at
		after.state.Now = now
		switch s.Kind {
		case SeenCall:
			all = append(all, f.call(after, s)...)
		case SeenClaim:
			all = append(all, f.claim(after, s)...)
		case SeenVerdict:
			all = append(all, f.verdict(after, s)...)
		case SeenRefusal:
			if t := &after.state.Places[Old][0]; t.Version == 0 || t.Token != s.Run || t.Due <= now {
				all = append(all, after)
			}
		}
	}
	return all
}
