package faults

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Judgement is what the ledger makes of a round.
type Judgement struct {
	Timers     int // ids
	Scheduled  int // timers of which the schedule was acknowledged
	Deliveries int

	Lost        int // acknowledged, not superseded, and never handled to the end
	Forgotten   int // as Lost, but Redis itself had lost the write
	Early       int // delivered before its instant
	Repeated    int // deliveries after the first of a timer
	Causes      map[Cause]int
	Uncaused    int // repeated without a cause
	Stale       int // settlements accepted of somebody who was no longer the holder
	Beside      int // handlers that ran on beside the next one of their timer
	Undelivered int // claims that reached no handler, without a cause
	Illegal     int // answers and deliveries that no order of the calls explains

	Recovery   []time.Duration // from a fault to the delivery of what it held up
	RecoveryBy map[Cause][]time.Duration

	// Violations are the timers that broke a promise, each with its history.
	Violations []string
}

// Judge applies the rules of the package's documentation to every timer.
func (l *Ledger) Judge() *Judgement {
	l.mu.Lock()
	defer l.mu.Unlock()
	j := &judge{Judgement: &Judgement{Causes: map[Cause]int{}, RecoveryBy: map[Cause][]time.Duration{}}, evidence: newEvidence(l.faults, l.TTL), most: l.Beside}
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
	most   time.Duration // that handlers of a timer may run beside each other
	firsts []time.Time   // of all deliveries
	wrongs []string      // of the timer that is looked at
}

func (j *judge) wrong(count *int, format string, args ...any) {
	*count++
	j.wrongs = append(j.wrongs, fmt.Sprintf(format, args...))
}

func (j *judge) timer(t *Timer) {
	j.wrongs = nil
	j.Timers++
	slices.SortStableFunc(t.Runs, func(a, b *Run) int { return a.Delivered.Compare(b.Delivered) })
	j.Deliveries += len(t.Runs)
	for i := range t.Calls {
		c := &t.Calls[i]
		disturbed := j.disturbed(t.ID, c)
		if c.Kind == CallReschedule && c.Found == FoundNothing && !disturbed {
			c.Kind, c.Generation, c.Err = CallCancel, c.Generation-1, nil // it changed nothing
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
		for _, c := range g.cancels {
			j.answer(t.ID, g, c)
		}
		if i+1 < len(generations) {
			g.ended = g.ended || generations[i+1].replaces()
			if again := generations[i+1].schedules; len(again) == 1 { // else it may have found itself
				j.answer(t.ID, g, again[0])
			}
		}
		j.lost(t, g)
	}
	j.stale(t)
	if len(j.wrongs) > 0 {
		j.Violations = append(j.Violations, strings.Join(j.wrongs, "; ")+"\n"+t.History(j.faults))
	}
}

func (j *judge) early(g *generation) {
	at := g.earliest()
	for _, r := range g.runs {
		if r.Delivered.Before(at) {
			j.wrong(&j.Early, "early by %v", at.Sub(r.Delivered))
		}
	}
}

// repeats finds the cause of every delivery after the first, and of every
// claim that no handler saw.
func (j *judge) repeats(t *Timer, g *generation) {
	var last *Run
	for _, r := range g.runs {
		j.firsts = append(j.firsts, r.Delivered)
		claims := r.Attempt - 1
		if last != nil {
			j.Repeated++
			cause, since := j.cause(t.ID, g, last, r)
			j.Causes[cause]++
			j.beside(cause, last, r)
			if cause == CauseNone {
				j.wrong(&j.Uncaused, "repeated without a cause")
			}
			if !since.IsZero() {
				j.recovered(cause, r.Delivered.Sub(since))
			}
			switch {
			case cause == CauseForgotten:
				claims = 0 // how many there were is forgotten too
			case cause == CauseRelease, cause == CauseReturned:
				claims -= last.Attempt - 1 // it takes the claim back
			case r.goesOn(last): // else it was scheduled again
				claims -= last.Attempt
			}
		}
		if claims > 0 {
			j.unseen(t, g, last, r, claims)
		}
		last = r
	}
}

// beside judges whether the handler of last had ended when that of r began. One
// whose process was not run could not know.
func (j *judge) beside(cause Cause, last, r *Run) {
	both := last.Ended.Sub(r.Began)
	switch {
	case j.most == 0, last.Ended.IsZero(), both <= j.most:
		return
	case cause == CauseAmbiguous, cause == CauseDuplicate, cause == CauseForgotten: // another timer
		return
	}
	for _, kind := range []FaultKind{Stall, Stop} {
		if f, ok := j.find(last.Node, r.Began.Add(-j.ttl), last.Ended, kind); ok && f.To.Sub(f.From) >= both-j.most {
			return
		}
	}
	j.wrong(&j.Beside, "attempt %d ran for %v beside attempt %d", last.Attempt, both, r.Attempt)
}

func (j *judge) recovered(from Cause, after time.Duration) {
	j.Recovery = append(j.Recovery, after)
	j.RecoveryBy[from] = append(j.RecoveryBy[from], after)
}

// answer compares what a call about g answered with its deliveries: a cancel,
// or a schedule of the next timer of the id.
func (j *judge) answer(id string, g *generation, c Call) {
	if c.unsure || len(g.schedules) == 0 {
		return
	}
	running, handled, delivered := false, false, false
	for _, r := range g.runs {
		// Who had claimed it before may begin with it until that lease ends.
		claimed := c.Found == FoundRunning && r.Delivered.Before(c.Returned.Add(j.ttl))
		if r.Delivered.After(c.Returned) && c.Found != FoundNothing && !claimed && !j.duplicated(id, r.Delivered) {
			j.wrong(&j.Illegal, "delivered %s, after it was gone", clock(r.Delivered))
			continue
		}
		delivered = delivered || !r.Delivered.After(c.Returned)
		handled = handled || (r.End == EndAck || r.End == EndReject) && r.Ended.Before(c.Returned)
		// Its lease was good all the while, and its handler had not returned.
		running = running || r.Delivered.Before(c.Called) && c.Returned.Before(r.Delivered.Add(j.ttl)) &&
			(r.Ended.IsZero() || r.Ended.After(c.Returned)) && (r.SettleCalled.IsZero() || r.SettleCalled.After(c.Returned))
	}
	switch {
	case c.Found == FoundNothing && g.acknowledged && !handled && !g.cancelledBefore(c):
		j.wrong(&j.Illegal, "%s found nothing, and no handler was done with it", c.Kind)
	case c.Found == FoundPending && running:
		j.wrong(&j.Illegal, "%s found it pending while a handler had it", c.Kind)
	case c.Found == FoundRunning && !delivered && c.Returned.Before(g.earliest()) && !j.anyFault(g.begun(), c.Returned):
		j.wrong(&j.Illegal, "%s found it running, and it was not due", c.Kind)
	}
}

// lost: acknowledged, and gone without a handler having been done with it.
func (j *judge) lost(t *Timer, g *generation) {
	if !g.acknowledged || g.ended {
		return
	}
	failed := false
	for _, r := range g.runs {
		if r.End == EndAck || r.End == EndReject {
			return
		}
		failed = failed || r.End == EndNack || r.End == EndPanic
	}
	if t.Dead != "" && failed {
		return
	}
	for _, c := range g.schedules {
		if c.Err == nil && j.forgot(c.Called, c.Returned) {
			j.Forgotten++
			return
		}
	}
	j.wrong(&j.Lost, "lost")
}

// stale: a settlement was accepted of a run that held the timer no more, or
// refused of one that did.
func (j *judge) stale(t *Timer) {
	for _, r := range t.Runs {
		taken := func(by time.Time) bool { // by another run, or a call
			return slices.ContainsFunc(t.Runs, func(o *Run) bool {
				return o != r && o.Delivered.After(r.Delivered) && o.Delivered.Before(by)
			}) || slices.ContainsFunc(t.Calls, func(c Call) bool {
				return c.Called.After(r.Delivered) && c.Returned.Before(by) && !c.unsure && c.Found == FoundRunning
			})
		}
		if r.Result == ResultAccepted && taken(r.SettleCalled) {
			j.wrong(&j.Stale, "attempt %d settled it and was not its holder", r.Attempt)
		}
		touched := slices.ContainsFunc(t.Calls, func(c Call) bool {
			claimed := r.Delivered
			if c.Found == FoundRunning {
				claimed = claimed.Add(-j.ttl) // or later
			}
			return c.Called.Before(r.Settled) && c.Returned.After(claimed)
		})
		if r.Result == ResultRefused && !touched && !taken(r.Settled) && !j.excused(t.ID, r) {
			j.wrong(&j.Illegal, "attempt %d was its holder and was refused", r.Attempt)
		}
	}
}

// outages adds, for each time that Redis was away or full, how long it took from its
// return to the next delivery.
func (j *judge) outages() {
	slices.SortFunc(j.firsts, time.Time.Compare)
	for _, f := range j.faults {
		if f.Kind != Outage && f.Kind != Full {
			continue
		}
		if i, _ := slices.BinarySearchFunc(j.firsts, f.To, time.Time.Compare); i < len(j.firsts) {
			j.Recovery = append(j.Recovery, j.firsts[i].Sub(f.To))
		}
	}
}

// Broken counts what must never happen.
func (j *Judgement) Broken() int {
	return j.Lost + j.Early + j.Uncaused + j.Stale + j.Beside + j.Undelivered + j.Illegal
}

// add adds another round.
func (j *Judgement) add(o *Judgement) {
	for _, pair := range [][2]*int{
		{&j.Timers, &o.Timers},
		{&j.Scheduled, &o.Scheduled},
		{&j.Deliveries, &o.Deliveries},
		{&j.Lost, &o.Lost},
		{&j.Forgotten, &o.Forgotten},
		{&j.Early, &o.Early},
		{&j.Repeated, &o.Repeated},
		{&j.Uncaused, &o.Uncaused},
		{&j.Stale, &o.Stale},
		{&j.Beside, &o.Beside},
		{&j.Undelivered, &o.Undelivered},
		{&j.Illegal, &o.Illegal},
	} {
		*pair[0] += *pair[1]
	}
	if j.Causes == nil {
		j.Causes = map[Cause]int{}
	}
	for cause, n := range o.Causes {
		j.Causes[cause] += n
	}
	j.Recovery = append(j.Recovery, o.Recovery...)
	if j.RecoveryBy == nil {
		j.RecoveryBy = map[Cause][]time.Duration{}
	}
	for cause, took := range o.RecoveryBy {
		j.RecoveryBy[cause] = append(j.RecoveryBy[cause], took...)
	}
	j.Violations = append(j.Violations, o.Violations...)
}

func clock(t time.Time) string { return cmp.Or(t.UTC().Format("15:04:05.000000"), "never") }
