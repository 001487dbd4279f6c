package faults

import (
	"slices"
	"time"
)

// Cause is the reason for which a timer was delivered again.
type Cause string

// The causes; the package's documentation has their rules.
const (
	CauseNone        Cause = "none"
	CauseNack        Cause = "nack"
	CauseCrash       Cause = "crash"
	CauseRelease     Cause = "release"
	CauseKill        Cause = "kill"
	CauseStop        Cause = "lease lost by SIGSTOP"
	CauseOutage      Cause = "Redis away for a lease"
	CauseLostCommand Cause = "lost command"
	CauseDelayed     Cause = "delayed by a lost command"
	CauseStall       Cause = "machine stalled"
	CauseDuplicate   Cause = "late duplicate of the schedule"
	CauseAmbiguous   Cause = "ambiguous schedule"
	CauseUndone      Cause = "undone by Redis"
	CauseTwoMasters  Cause = "two masters"
	CauseLinkCut     Cause = "link cut"
	CauseReturned    Cause = "returned after a link cut"
	CauseServingKill Cause = "serving node killed"
	CauseRedrive     Cause = "redrive of its dead letter"

	// CauseCallUnanswered is used for calls: the time until their next answer.
	CauseCallUnanswered Cause = "a client's node killed"

	// These two are used where repeats need no cause.
	CauseUnanswered Cause = "no answer of the handler"
	CauseUnsettled  Cause = "answer without effect"
)

// evidence is an index of the faults of a round.
type evidence struct {
	ttl    time.Duration
	faults []Fault
	byWord map[string][]int // faults of single commands, by the words of the command
	whole  []int            // the other faults
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

// cause returns the cause of the delivery r after last, and the start of the fault
// that delayed it; zero if no fault did.
func (e *evidence) cause(id string, g *generation, last, r *Run) (Cause, time.Time) {
	switch {
	case last.End == EndReject && g.redriven(last.Delivered, r.Delivered):
		return CauseRedrive, time.Time{}
	case last.End == EndNack && countedAfter(last, r):
		return CauseNack, time.Time{}
	case last.End == EndPanic && countedAfter(last, r):
		return CauseCrash, time.Time{}
	case last.End == EndDraining, last.End == EndNack: // a failure after the drain deadline may be due to it
		// A later delivery is due to the expiry of the lease.
		until := last.Ended
		if last.Result == ResultUnknown { // the drain may have come while the failure was on its way
			until = last.Settled
		}
		if f, ok := e.find(last.Node, last.Delivered, until, Drain); ok && (r.Delivered.Before(f.To.Add(e.ttl/2)) || e.waited(f, last, r)) {
			return CauseRelease, f.From
		}
	}
	if cause := e.scheduledAgain(id, g, last, r); cause != CauseNone {
		return cause, time.Time{}
	}
	if e.undone(last, r) {
		return CauseUndone, time.Time{}
	}
	if e.twoMasters(last, r) {
		return CauseTwoMasters, time.Time{}
	}
	if f, ok := e.returned(last, r); ok {
		return CauseReturned, f.From
	}
	confirmed := last.Result == ResultAccepted && last.Settled.Before(r.Delivered)
	if confirmed || r.Delivered.Before(e.leased(last)) {
		return CauseNone, time.Time{} // it was settled, or its lease had not expired
	}
	if last.End == EndPanic {
		return CauseCrash, time.Time{}
	}
	return e.expired(id, last, r)
}

// countedAfter reports whether the failure of last counted before r. A queue counts deliveries.
func countedAfter(last, r *Run) bool {
	return r.Failures == last.Failures+1 || r.Message != "" && r.Failures > last.Failures
}

// waited reports whether a released timer could not be claimed because the machine
// or Redis was stalled.
func (e *evidence) waited(drain Fault, last, r *Run) bool {
	for _, kind := range []FaultKind{Stall, Stop} {
		if _, stalled := e.find(r.Node, drain.To, r.Delivered, kind); stalled {
			return r.Attempt == last.Attempt
		}
	}
	return false
}

// claimedEarly is how long before its instant a node may claim a timer at most.
func (e *evidence) claimedEarly() time.Duration { return min(200*time.Millisecond, e.ttl/10) }

// leased returns the earliest end of the lease of a run that was not extended. A first
// attempt that is not late may have been claimed early.
func (e *evidence) leased(r *Run) time.Time {
	end := e.claimed(r).Add(e.ttl)
	if late := r.Delivered.Sub(r.Activation); r.Attempt == 1 && late <= lateSlack {
		end = end.Add(-e.claimedEarly() - late)
	}
	return end
}

// claimed returns the earliest start of the lease of a run, which may be up to half a lease
// older than the run: if the reply to the claim was lost, the run has the instant of the
// second answer, and while node or machine stalled, nothing was delivered.
func (e *evidence) claimed(r *Run) time.Time {
	at, oldest := r.Delivered, r.Delivered.Add(-e.ttl/2)
	for _, f := range e.faults {
		lost := f.Target == r.Node && (f.Kind == LostReply || f.Kind == Reset) && f.From.After(oldest)
		stalled := f.Kind == Stall && (f.Target == r.Node || f.Target == "") && f.To.After(r.Delivered.Add(-lateSlack))
		if (lost || stalled) && f.From.Before(at) {
			at = slices.MaxFunc([]time.Time{f.From, oldest}, time.Time.Compare)
		}
	}
	return at
}

// returned finds a link cut that lost the verdict of a subscriber, which returned
// the lease after it had reconnected. That undoes the claim.
func (e *evidence) returned(last, r *Run) (Fault, bool) {
	if last.Ended.IsZero() || last.Ended.After(r.Delivered) || r.Attempt != last.Attempt {
		return Fault{}, false
	}
	return e.find(last.Node, last.Delivered, r.Delivered, LinkCut)
}

// expired returns the cause for which the lease of last expired without a
// settlement. A fault that begins more than a lease after the handler's end is not
// a cause.
func (e *evidence) expired(id string, last, r *Run) (Cause, time.Time) {
	until := r.Delivered
	if !last.Ended.IsZero() && last.Ended.Add(e.ttl).Before(until) {
		until = last.Ended.Add(e.ttl)
	}
	for _, c := range []struct {
		kind  FaultKind
		cause Cause
	}{{Kill, CauseKill}, {Stop, CauseStop}, {Outage, CauseOutage}, {ServingKill, CauseServingKill}, {LinkCut, CauseLinkCut}} {
		if f, ok := e.find(last.Node, last.Delivered, until, c.kind); ok {
			return c.cause, f.From
		}
	}
	for _, i := range e.byWord[id] {
		f := e.faults[i]
		if f.Target == last.Node && !f.From.Before(last.Delivered) && f.From.Before(until) {
			return CauseLostCommand, f.From
		}
	}
	if f, ok := e.find(last.Node, last.Delivered, until, Stall); ok {
		return CauseStall, f.From
	}
	// Exchanges are sequential: a lost one delays the next ones.
	for _, f := range e.faults {
		lost := f.Kind == LostRequest || f.Kind == LostReply
		if lost && f.Target == last.Node && f.From.After(last.Delivered) && f.From.Before(e.claimed(last).Add(e.ttl)) {
			return CauseDelayed, f.From
		}
	}
	return CauseNone, time.Time{}
}

// scheduledAgain returns the cause for which a schedule ran twice: its first outcome
// was unknown, or its command was sent again. Attempts then count from 1 again.
func (e *evidence) scheduledAgain(id string, g *generation, last, r *Run) Cause {
	if r.continues(last) || len(g.schedules) == 0 {
		return CauseNone
	}
	for _, i := range e.byWord[id] {
		f := e.faults[i]
		if f.Target == g.schedules[0].Client && f.Kind == Duplicate && f.From.Before(r.Delivered) {
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

// continues reports whether r is a later attempt at the same timer as last. Retries
// keep the activation, and a timer that is scheduled again has a new one.
func (r *Run) continues(last *Run) bool {
	return r.Attempt > last.Attempt && r.Activation.Equal(last.Activation)
}

// disturbed reports whether a call may have run more than once: its command was
// hit by a fault, or Redis was away.
func (e *evidence) disturbed(id string, c *Call) bool {
	if _, ok := e.find(c.Client, c.Called, c.Returned, Outage); ok {
		return true
	}
	if _, ok := e.find(c.Client, c.Called, c.Returned, LinkCut); ok {
		return true
	}
	return slices.ContainsFunc(e.byWord[id], func(i int) bool {
		f := e.faults[i]
		return f.Target == c.Client && f.Kind != Slow && f.overlaps(c.Called, c.Returned)
	})
}

// undone reports whether Redis lost the settlement of last. A settlement without an
// answer is assumed to have been made within a lease.
func (e *evidence) undone(last, r *Run) bool {
	return slices.ContainsFunc(e.whole, func(i int) bool {
		f := e.faults[i]
		if f.Kind != DataLoss || f.Target != "" && f.Target != last.Node || r.Delivered.Before(f.To) || !last.Delivered.Before(f.To) {
			return false
		}
		if last.Result == ResultAccepted {
			return !last.Settled.Before(f.From)
		}
		return last.Ended.IsZero() || !last.Ended.Add(e.ttl).Before(f.From)
	})
}

// duplicated reports whether a command with the id was sent again before an
// instant.
func (e *evidence) duplicated(id string, before time.Time) bool {
	return slices.ContainsFunc(e.byWord[id], func(i int) bool {
		return e.faults[i].Kind == Duplicate && e.faults[i].From.Before(before)
	})
}

// twoMasters reports whether one of two runs was claimed, or settled, while Redis lost
// the writes of its node: the other master had the timer as well.
func (e *evidence) twoMasters(last, r *Run) bool {
	if e.dataLost(r.Node, r.Delivered, r.Delivered) {
		return true
	}
	held := last.Ended.Add(e.ttl)
	if last.Ended.IsZero() {
		held = r.Delivered
	}
	return slices.ContainsFunc(e.whole, func(i int) bool {
		f := e.faults[i]
		return f.Kind == DataLoss && f.Target == last.Node && f.overlaps(last.Delivered, held)
	})
}

// anyLoss reports whether Redis lost writes of any process.
func (e *evidence) anyLoss() bool {
	return slices.ContainsFunc(e.whole, func(i int) bool { return e.faults[i].Kind == DataLoss })
}

// dataLost reports whether Redis lost writes of a process in the interval.
func (e *evidence) dataLost(target string, from, to time.Time) bool {
	_, ok := e.find(target, from, to, DataLoss)
	return ok
}

// swallowed finds a fault of the interval that can have kept a claim from its
// handler.
func (e *evidence) swallowed(from, to time.Time) (Fault, bool) {
	for _, kind := range []FaultKind{Kill, Stop, Outage, DataLoss, LinkCut, Stall} {
		for _, i := range e.whole {
			if f := e.faults[i]; f.Kind == kind && f.overlaps(from, to) {
				return f, true
			}
		}
	}
	return Fault{}, false
}

// anyFault reports whether there was any fault in the interval.
func (e *evidence) anyFault(from, to time.Time) bool {
	return slices.ContainsFunc(e.faults, func(f Fault) bool { return f.overlaps(from, to) })
}

// excused reports whether a settlement of the holder may have been refused: a fault
// hit its node, Redis, or a command about the timer.
func (e *evidence) excused(id string, r *Run) bool {
	for _, kind := range []FaultKind{Stop, Outage, DataLoss, Stall} {
		if _, ok := e.find(r.Node, r.Delivered, r.Settled, kind); ok {
			return true
		}
	}
	return slices.ContainsFunc(e.byWord[id], func(i int) bool {
		f := e.faults[i]
		return (f.Target == r.Node || f.Kind == Duplicate) && f.overlaps(r.Delivered, r.Settled)
	})
}

// find looks for a fault of target, or of all processes, that overlaps the interval.
func (e *evidence) find(target string, from, to time.Time, kind FaultKind) (Fault, bool) {
	for _, i := range e.whole {
		f := e.faults[i]
		if f.Kind == kind && (f.Target == target || f.Target == "") && f.overlaps(from, to) {
			return f, true
		}
	}
	return Fault{}, false
}

func (f Fault) overlaps(from, to time.Time) bool { return !f.To.Before(from) && f.From.Before(to) }
