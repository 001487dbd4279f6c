package faults

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Judge applies the rules of the package's documentation to every timer.
func (l *DeliveryLog) Judge() *Judgement {
	l.mu.Lock()
	defer l.mu.Unlock()
	j := &judge{Judgement: &Judgement{Causes: map[Cause]int{}, RecoveryBy: map[Cause][]time.Duration{}, Confirmed: map[int]int{}, LostConfirmed: map[int]int{}}, evidence: newEvidence(l.faults, l.TTL), maxOverlap: l.MaxOverlap, resolution: max(l.Resolution, time.Microsecond), atLeastOnce: l.AtLeastOnce, keptFrom: l.KeptFrom}
	ids := make([]string, 0, len(l.timers))
	for id := range l.timers {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		j.timer(l.timers[id])
	}
	j.outages()
	return j.Judgement
}

type judge struct {
	*Judgement
	*evidence
	maxOverlap  time.Duration // DeliveryLog.MaxOverlap
	resolution  time.Duration // DeliveryLog.Resolution, at least that of a Redis
	atLeastOnce bool          // DeliveryLog.AtLeastOnce

	keptFrom   int         // DeliveryLog.KeptFrom
	delivered  []time.Time // of all deliveries
	violations []string    // of the current timer
}

func (j *judge) violation(count *int, format string, args ...any) {
	*count++
	j.violations = append(j.violations, fmt.Sprintf(format, args...))
}

func (j *judge) timer(t *Timer) {
	j.violations = nil
	j.Timers++
	slices.SortStableFunc(t.Runs, func(a, b *Run) int { return a.Delivered.Compare(b.Delivered) })
	j.Deliveries += len(t.Runs)
	for i := range t.Calls {
		c := &t.Calls[i]
		disturbed := j.disturbed(t.ID, c)
		if c.Kind == CallReschedule && c.Found == FoundNothing && !disturbed {
			c.Kind, c.Generation, c.Err = CallCancel, c.Generation-1, nil // it had no effect
		}
		c.unsure = c.Err != nil || disturbed
	}
	generations := t.generations()
	for i, g := range generations {
		if g.acknowledged {
			j.Scheduled++
		}
		j.early(g)
		j.repeats(t, g)
		for _, c := range g.schedules {
			if c.Err == nil {
				j.Confirmed[c.Replicas]++
			}
		}
		for _, c := range g.cancels {
			j.answer(t.ID, g, c)
		}
		if i+1 < len(generations) {
			g.ended = g.ended || generations[i+1].replaces()
			if again := generations[i+1].schedules; len(again) == 1 { // with several attempts, one may have found the timer of another
				j.answer(t.ID, g, again[0])
			}
		}
		j.lost(t, g)
	}
	j.stale(t)
	if len(j.violations) > 0 {
		j.Violations = append(j.Violations, strings.Join(j.violations, "; ")+"\n"+t.History(j.faults))
	}
}

func (j *judge) early(g *generation) {
	at := g.earliest(j.resolution)
	for _, r := range g.runs {
		if r.Delivered.Before(at) {
			j.violation(&j.Early, "early by %v", at.Sub(r.Delivered))
		}
	}
}

// repeats finds the cause of every delivery after the first, and of every claim that
// reached no handler.
func (j *judge) repeats(t *Timer, g *generation) {
	if j.atLeastOnce {
		for i := 1; i < len(g.runs); i++ {
			j.Repeated++
			j.Causes[g.runs[i-1].afterEnd()]++
		}
		return
	}
	var last *Run
	for _, r := range g.runs {
		j.delivered = append(j.delivered, r.Delivered)
		claims := r.Attempt - 1
		if last != nil {
			j.Repeated++
			cause, since := j.cause(t.ID, g, last, r)
			j.Causes[cause]++
			j.overlaps(cause, last, r)
			if cause == CauseNone {
				j.violation(&j.Uncaused, "repeated without a cause")
			}
			if !since.IsZero() {
				j.recovered(cause, r.Delivered.Sub(since))
			}
			switch {
			case cause == CauseUndone, cause == CauseTwoMasters, j.twoMasters(last, r):
				claims = 0 // Redis lost their number too
			case cause == CauseRelease, cause == CauseReturned:
				claims -= last.Attempt - 1 // the claim was undone
			case r.continues(last): // else it was scheduled again
				claims -= last.Attempt
			}
		}
		if claims > 0 {
			j.unseen(t, g, last, r, claims)
		}
		last = r
	}
}

// afterEnd returns why a run may be repeated, by how it ended.
func (r *Run) afterEnd() Cause {
	switch r.End {
	case EndNack:
		return CauseNack
	case EndNone:
		return CauseUnanswered
	default:
		return CauseUnsettled
	}
}

// overlaps judges whether the handler of last had ended when that of r began. A
// handler whose process was stalled is excused for that time.
func (j *judge) overlaps(cause Cause, last, r *Run) {
	both := last.Ended.Sub(r.Began)
	switch {
	case j.maxOverlap == 0, last.Ended.IsZero(), both <= j.maxOverlap:
		return
	case cause == CauseTwoMasters:
		j.Twice++
		return
	case cause == CauseAmbiguous, cause == CauseDuplicate, cause == CauseUndone: // another timer
		return
	}
	for _, kind := range []FaultKind{Stall, Stop} {
		if f, ok := j.find(last.Node, r.Began.Add(-j.ttl), last.Ended, kind); ok && f.To.Sub(f.From) >= both-j.maxOverlap {
			return
		}
	}
	j.violation(&j.Overlapping, "attempt %d overlapped attempt %d for %v", last.Attempt, r.Attempt, both)
}

func (j *judge) recovered(from Cause, after time.Duration) {
	j.Recovery = append(j.Recovery, after)
	j.RecoveryBy[from] = append(j.RecoveryBy[from], after)
}

// answer compares the answer of a call with the deliveries of g. The call is a
// cancel, or a schedule of the next timer of the id.
func (j *judge) answer(id string, g *generation, c Call) {
	if c.unsure || len(g.schedules) == 0 {
		return
	}
	running, handled, delivered := false, false, false
	for _, r := range g.runs {
		// A handler may begin after the call if the claim was before it.
		claimed := c.Found == FoundRunning && r.Delivered.Before(c.Returned.Add(j.ttl))
		if r.Delivered.After(c.Returned) && c.Found != FoundNothing && !claimed && !j.duplicated(id, r.Delivered) {
			j.violation(&j.Illegal, "delivered at %s, after it was removed", clock(r.Delivered))
			continue
		}
		delivered = delivered || !r.Delivered.After(c.Returned)
		handled = handled || (r.End == EndAck || r.End == EndReject) && r.Ended.Before(c.Returned)
		// Its lease had not expired during the call, and its handler had not returned.
		running = running || r.Delivered.Before(c.Called) && c.Returned.Before(r.Delivered.Add(j.ttl)) &&
			(r.Ended.IsZero() || r.Ended.After(c.Returned)) && (r.SettleCalled.IsZero() || r.SettleCalled.After(c.Returned))
	}
	switch {
	case c.Found == FoundNothing && g.acknowledged && !handled && !g.cancelledBefore(c):
		j.violation(&j.Illegal, "%s found nothing, although no handler was done", c.Kind)
	case c.Found == FoundPending && running:
		j.violation(&j.Illegal, "%s found it pending while a handler had it", c.Kind)
	case c.Found == FoundRunning && !delivered && c.Returned.Before(g.earliest(j.resolution).Add(-j.claimedEarly())) && !j.anyFault(g.begun(), c.Returned):
		j.violation(&j.Illegal, "%s found it running before it was due", c.Kind)
	}
}

// lost judges whether an acknowledged timer disappeared before a handler was done
// with it.
func (j *judge) lost(t *Timer, g *generation) {
	if !g.acknowledged || g.ended {
		return
	}
	failed := false
	done := 0
	for _, r := range g.runs {
		if r.End == EndAck || r.End == EndReject {
			done++
		}
		failed = failed || r.End == EndNack || r.End == EndPanic
	}
	if done > len(g.redrives) || t.Dead != "" && failed { // each redrive makes one timer more
		return
	}
	for _, c := range g.schedules {
		if _, lost := j.find(c.Client, c.Called, c.Returned, DataLoss); c.Err == nil && lost {
			if j.keptFrom > 0 && c.Replicas >= j.keptFrom {
				break
			}
			j.LostByRedis++
			j.LostConfirmed[c.Replicas]++
			return
		}
	}
	j.violation(&j.Lost, "lost")
}

// stale judges whether the settlement of a run that no longer held the timer was
// accepted, or that of the holder refused.
func (j *judge) stale(t *Timer) {
	for _, r := range t.Runs {
		taken := func(by time.Time) bool { // by another run, or a call
			return slices.ContainsFunc(t.Runs, func(o *Run) bool {
				return t.claimedAfter(o, r) && o.Delivered.Before(by) && !j.dataLost(o.Node, o.Delivered, o.Delivered)
			}) || slices.ContainsFunc(t.Calls, func(c Call) bool {
				return c.Called.After(r.Delivered) && c.Returned.Before(by) && !c.unsure && c.Found == FoundRunning
			})
		}
		// A settlement that Redis has lost had no effect.
		if r.Result == ResultAccepted && taken(r.SettleCalled) && !j.dataLost(r.Node, r.SettleCalled, r.Settled) {
			j.violation(&j.Stale, "attempt %d settled the timer and was not its holder", r.Attempt)
		}
		touched := slices.ContainsFunc(t.Calls, func(c Call) bool {
			claimed := r.Delivered
			if c.Found == FoundRunning {
				claimed = claimed.Add(-j.ttl) // the claim may be that much older
			}
			return c.Called.Before(r.Settled) && c.Returned.After(claimed)
		})
		if r.Result == ResultRefused && !touched && !taken(r.Settled) && !j.excused(t.ID, r) {
			j.violation(&j.Illegal, "attempt %d was its holder and was refused", r.Attempt)
		}
	}
}

// outages adds the recovery time of each outage: from the return of Redis to the
// next delivery.
func (j *judge) outages() {
	slices.SortFunc(j.delivered, time.Time.Compare)
	for _, f := range j.faults {
		if f.Kind != Outage && f.Kind != Full {
			continue
		}
		if i, _ := slices.BinarySearchFunc(j.delivered, f.To, time.Time.Compare); i < len(j.delivered) {
			j.Recovery = append(j.Recovery, j.delivered[i].Sub(f.To))
		}
	}
}

func clock(t time.Time) string { return cmp.Or(t.UTC().Format("15:04:05.000000"), "never") }
