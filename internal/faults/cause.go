package faults

import (
	"slices"
	"time"
)

// Cause is why a timer was delivered again.
type Cause string

// The causes; the package's documentation has their rules.
const (
	CauseNone      Cause = "none"
	CauseNack      Cause = "nack"
	CauseCrash     Cause = "crash"
	CauseRelease   Cause = "release"
	CauseKill      Cause = "kill"
	CauseStop      Cause = "lease lost by SIGSTOP"
	CauseOutage    Cause = "Redis away for a lease"
	CauseLink      Cause = "lost command"
	CauseHeldUp    Cause = "behind a lost command"
	CauseStall     Cause = "machine stalled"
	CauseDuplicate Cause = "late duplicate of the schedule"
	CauseAmbiguous Cause = "ambiguous schedule"
	CauseForgotten Cause = "undone by Redis"
	CauseCut       Cause = "link cut"
	CauseReturned  Cause = "given back after a link cut"
	CauseOrphan    Cause = "serving node killed"

	// CauseUnanswered is of calls, and how long their next answer took.
	CauseUnanswered Cause = "a client's node killed"
)

// evidence is what the harness did.
type evidence struct {
	ttl    time.Duration
	faults []Fault
	byWord map[string][]int // faults of commands, by their words
	whole  []int            // the others
}

func newEvidence(faults []Fault, ttl time.Duration) *evidence {
	e := &evidence{ttl: ttl, faults: faults, byWord: map[string][]int{}}
	for i, f := range faults {
		if f.Words == nil {
			e.whole = append(e.whole, i)
		}
		for _, w := range f.Words {
			e.byWord[w] = append(e.byWord[w], i)
		}
	}
	return e
}

// cause says why r came after last, and since when it was held up by a fault;
// zero when no fault held it up.
func (e *evidence) cause(id string, g *generation, last, r *Run) (Cause, time.Time) {
	switch {
	case last.End == EndNack && (r.Failures == last.Failures+1 || r.Message != "" && r.Failures > last.Failures): // a queue counts deliveries
		return CauseNack, time.Time{}
	case last.End == EndDraining, last.End == EndNack: // one that fails after the deadline may do so because of it
		// At once: half a lease after the node's end it came by its expiry.
		if f, ok := e.find(last.Node, last.Delivered, last.Ended, Drain); ok && (r.Delivered.Before(f.To.Add(e.ttl/2)) || e.waited(f, last, r)) {
			return CauseRelease, f.From
		}
	}
	if cause := e.scheduledAgain(id, g, last, r); cause != CauseNone {
		return cause, time.Time{}
	}
	if e.undone(last, r) {
		return CauseForgotten, time.Time{}
	}
	if f, ok := e.returned(last, r); ok {
		return CauseReturned, f.From
	}
	confirmed := last.Result == ResultAccepted && last.Settled.Before(r.Delivered)
	if confirmed || r.Delivered.Before(e.claimed(last).Add(e.ttl)) {
		return CauseNone, time.Time{} // it was settled, or its lease was good
	}
	if last.End == EndPanic {
		return CauseCrash, time.Time{}
	}
	return e.expired(id, last, r)
}

// waited: what was released at the end of a node nobody could take, for the
// machine or Redis stood still.
func (e *evidence) waited(drain Fault, last, r *Run) bool {
	_, stalled := e.find("", drain.To, r.Delivered, Stall)
	return stalled && r.Attempt == last.Attempt
}

// claimed is when the lease of a run began at the earliest. Where the reply of a
// claim was lost, the second answer bears the instant at which it was given; one
// that comes after half a lease is not used.
func (e *evidence) claimed(r *Run) time.Time {
	at := r.Delivered
	for _, f := range e.faults {
		if f.Who == r.Node && (f.Kind == LostReply || f.Kind == Reset) && f.From.Before(at) && f.From.After(r.Delivered.Add(-e.ttl/2)) {
			at = f.From
		}
	}
	return at
}

// returned: what a subscriber said of a lease was lost with its link, and when it
// was back it gave back what it no longer had in hand, which takes the claim back.
func (e *evidence) returned(last, r *Run) (Fault, bool) {
	if last.Ended.IsZero() || last.Ended.After(r.Delivered) || r.Attempt != last.Attempt {
		return Fault{}, false
	}
	return e.find(last.Node, last.Delivered, r.Delivered, Cut)
}

// expired says why the lease of last ended without a settlement. Once its
// handler has returned, a fault that begins a lease later explains nothing.
func (e *evidence) expired(id string, last, r *Run) (Cause, time.Time) {
	until := r.Delivered
	if !last.Ended.IsZero() && last.Ended.Add(e.ttl).Before(until) {
		until = last.Ended.Add(e.ttl)
	}
	for _, c := range []struct {
		kind  FaultKind
		cause Cause
	}{{Kill, CauseKill}, {Stop, CauseStop}, {Outage, CauseOutage}, {Orphan, CauseOrphan}, {Cut, CauseCut}} {
		if f, ok := e.find(last.Node, last.Delivered, until, c.kind); ok {
			return c.cause, f.From
		}
	}
	for _, i := range e.byWord[id] {
		f := e.faults[i]
		if f.Who == last.Node && !f.From.Before(last.Delivered) && f.From.Before(until) {
			return CauseLink, f.From
		}
	}
	if f, ok := e.find(last.Node, last.Delivered, until, Stall); ok {
		return CauseStall, f.From
	}
	// Exchanges go one after another: one that is lost holds up those behind it.
	for _, f := range e.faults {
		lost := f.Kind == LostRequest || f.Kind == LostReply
		if lost && f.Who == last.Node && f.From.After(last.Delivered) && f.From.Before(e.claimed(last).Add(e.ttl)) {
			return CauseHeldUp, f.From
		}
	}
	return CauseNone, time.Time{}
}

// scheduledAgain: a schedule was run twice, for its first outcome was unknown or
// it was sent once more. The timer starts anew then.
func (e *evidence) scheduledAgain(id string, g *generation, last, r *Run) Cause {
	if r.goesOn(last) || len(g.schedules) == 0 {
		return CauseNone
	}
	for _, i := range e.byWord[id] {
		f := e.faults[i]
		if f.Who == g.schedules[0].Client && f.Kind == Duplicate && f.From.Before(r.Delivered) {
			return CauseDuplicate
		}
	}
	answered := g.schedules[len(g.schedules)-1].Returned
	if last.Delivered.After(answered) {
		return CauseNone
	}
	if len(g.schedules) > 1 || g.schedules[0].unsure {
		return CauseAmbiguous
	}
	return CauseNone
}

// goesOn reports whether r is a later attempt of what last was one of: retries
// keep the activation, and a timer that is scheduled again has another.
func (r *Run) goesOn(last *Run) bool {
	return r.Attempt > last.Attempt && r.Activation.Equal(last.Activation)
}

// disturbed reports whether a call may have been made more than once: its
// command was struck, or Redis was away.
func (e *evidence) disturbed(id string, c *Call) bool {
	if _, ok := e.find("", c.Called, c.Returned, Outage); ok {
		return true
	}
	if _, ok := e.find(c.Client, c.Called, c.Returned, Cut); ok {
		return true
	}
	return slices.ContainsFunc(e.byWord[id], func(i int) bool {
		f := e.faults[i]
		return f.Who == c.Client && f.Kind != Slow && f.overlaps(c.Called, c.Returned)
	})
}

// undone: Redis forgot what became of last. Where nobody heard of a settlement,
// it was made within a lease.
func (e *evidence) undone(last, r *Run) bool {
	return slices.ContainsFunc(e.whole, func(i int) bool {
		f := e.faults[i]
		if f.Kind != Amnesia || r.Delivered.Before(f.To) || !last.Delivered.Before(f.To) {
			return false
		}
		if last.Result == ResultAccepted {
			return !last.Settled.Before(f.From)
		}
		return last.Ended.IsZero() || !last.Ended.Add(e.ttl).Before(f.From)
	})
}

// duplicated reports whether a command with the id was sent once more before
// an instant.
func (e *evidence) duplicated(id string, before time.Time) bool {
	return slices.ContainsFunc(e.byWord[id], func(i int) bool {
		return e.faults[i].Kind == Duplicate && e.faults[i].From.Before(before)
	})
}

// forgot: Redis lost what it wrote within the span.
func (e *evidence) forgot(from, to time.Time) bool {
	_, ok := e.find("", from, to, Amnesia)
	return ok
}

// swallowed finds what can have kept a claim from its handler in the span.
func (e *evidence) swallowed(from, to time.Time) (Fault, bool) {
	for _, kind := range []FaultKind{Kill, Stop, Outage, Amnesia, Cut, Stall} {
		for _, i := range e.whole {
			if f := e.faults[i]; f.Kind == kind && f.overlaps(from, to) {
				return f, true
			}
		}
	}
	return Fault{}, false
}

// anyFault reports whether anything struck within the span.
func (e *evidence) anyFault(from, to time.Time) bool {
	return slices.ContainsFunc(e.faults, func(f Fault) bool { return f.overlaps(from, to) })
}

// excused reports whether a holder may have been refused: its node or Redis was
// struck meanwhile, or a command about the timer.
func (e *evidence) excused(id string, r *Run) bool {
	for _, kind := range []FaultKind{Stop, Outage, Amnesia, Stall} {
		if _, ok := e.find(r.Node, r.Delivered, r.Settled, kind); ok {
			return true
		}
	}
	return slices.ContainsFunc(e.byWord[id], func(i int) bool {
		f := e.faults[i]
		return (f.Who == r.Node || f.Kind == Duplicate) && f.overlaps(r.Delivered, r.Settled)
	})
}

// find looks for a fault of who, or of everybody, that overlaps the span.
func (e *evidence) find(who string, from, to time.Time, kind FaultKind) (Fault, bool) {
	for _, i := range e.whole {
		f := e.faults[i]
		if f.Kind == kind && (f.Who == who || f.Who == "") && f.overlaps(from, to) {
			return f, true
		}
	}
	return Fault{}, false
}

func (f Fault) overlaps(from, to time.Time) bool { return !f.To.Before(from) && f.From.Before(to) }
