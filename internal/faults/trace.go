package faults

import (
	"cmp"
	"slices"
	"time"

	"github.com/wakebell/wakebell/internal/spec"
)

// mostTwins is how many calls that may have run are kept of those that differ in their instants
// only: while Redis is away a client may repeat a call dozens of times.
const mostTwins = 3

// Explained is how the specification explains a delivery log.
type Explained struct {
	Timers    int // ids that steps of the specification explain
	Undecided int // for which the search was given up
	Skipped   int // messages of queues, and ids of which Redis has lost writes

	// Violations are the ids that no order of steps explains, each with its history.
	Violations []string
}

// Explain looks for steps of the specification (docs/spec.md) that explain the calls and
// deliveries of each id. Where the log does not say whether something happened, because of a
// fault, it may have.
func (l *DeliveryLog) Explain() (e Explained) {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := newEvidence(l.faults, l.TTL)
	ids := make([]string, 0, len(l.timers))
	for id := range l.timers {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		t := l.timers[id]
		trace, ok := (&tracer{evidence: found, Timer: t}).trace()
		if !ok || l.AtLeastOnce {
			e.Skipped++
			continue
		}
		switch first, sure, err := trace.Check(); {
		case !sure:
			e.Undecided++
		case err == nil:
			e.Timers++
		case first < 0:
			e.Violations = append(e.Violations, err.Error()+"\n"+t.History(l.faults))
		default:
			s := trace.Seen[first]
			at := (&tracer{Timer: t}).base().Add(time.Duration(s.From) * time.Microsecond)
			e.Violations = append(e.Violations, err.Error()+": "+what(s)+" at "+clock(at)+"\n"+t.History(l.faults))
		}
	}
	return e
}

func what(s spec.Seen) string {
	return [...]string{"a call", "a delivery", "a verdict that counted", "a verdict that did not count"}[s.Kind]
}

// tracer makes the trace of a timer from its log.
type tracer struct {
	*evidence
	*Timer
}

// base is the instant from which the trace counts.
func (t *tracer) base() (at time.Time) {
	for _, c := range t.Calls {
		if at.IsZero() || c.Called.Before(at) {
			at = c.Called
		}
	}
	for _, r := range t.Runs {
		if at.IsZero() || r.Delivered.Before(at) {
			at = r.Delivered
		}
	}
	return at.Add(-time.Minute).Truncate(time.Second)
}

// from and to are instants of the trace; the zero time is Never.
func (t *tracer) from(at time.Time) spec.Instant { return t.instant(at, 0) }
func (t *tracer) to(at time.Time) spec.Instant   { return t.instant(at, time.Microsecond-1) }

func (t *tracer) instant(at time.Time, up time.Duration) spec.Instant {
	since := (at.Sub(t.base()) + up) / time.Microsecond
	if at.IsZero() || since > time.Duration(spec.Never) {
		return spec.Never
	}
	return spec.Instant(since)
}

// trace returns the trace; ok is false if the specification does not have what happened.
func (t *tracer) trace() (trace spec.Trace, ok bool) {
	slices.SortStableFunc(t.Runs, func(a, b *Run) int { return a.Delivered.Compare(b.Delivered) })
	trace.World = spec.World{IDs: 1, TTL: spec.Instant((t.ttl - time.Millisecond).Microseconds()), Ahead: spec.Instant(t.claimedEarly().Microseconds())}
	if len(t.Calls) == 0 || t.anyLoss() {
		return trace, false
	}
	perhaps := map[spec.Seen]int{}
	for i := range t.Calls {
		for _, s := range t.call(i) {
			same := s
			same.From = 0
			if perhaps[same]++; s.Perhaps && perhaps[same] > mostTwins {
				continue
			}
			trace.Seen = append(trace.Seen, s)
		}
	}
	for i, r := range t.Runs {
		if r.Message != "" || i >= spec.MostSeen {
			return trace, false
		}
		trace.Seen = append(trace.Seen, t.run(int8(i+1), r)...)
	}
	if t.Dead != "" { // perhaps of a timer that reached no handler
		trace.Seen = append(trace.Seen, spec.Seen{Kind: spec.SeenVerdict, Run: spec.Unseen, To: spec.Never, Perhaps: true, Verdicts: spec.OneOf(spec.Reject)})
	}
	return trace, true
}

// call returns what was seen of a call. One that was disturbed, or sent again, may have run
// twice.
func (t *tracer) call(i int) (all []spec.Seen) {
	c := &t.Calls[i]
	s := spec.Seen{Kind: spec.SeenCall, Call: spec.Schedule, From: t.from(c.Called), To: t.to(c.Returned), In: spec.Instant(c.Earliest.Sub(c.Called).Microseconds()), Due: spec.Unknown}
	switch c.Kind {
	case CallSchedule:
		s.Writes = c.Generation + 1
	case CallRedrive:
		s.Writes = spec.Kept
	case CallCancel:
		s.Call = spec.Cancel
	}
	perhaps := s
	perhaps.Perhaps, perhaps.To = true, spec.Never
	disturbed := t.disturbed(t.ID, c)
	for _, at := range t.byWord[t.ID] {
		if f := t.faults[at]; f.Kind == Duplicate && f.Target == c.Client && f.overlaps(c.Called, c.Returned) {
			perhaps.From = t.from(f.From)
			all = append(all, perhaps)
		}
	}
	perhaps.From = s.From
	answered := c.Err == nil || c.Kind == CallReschedule && c.Found == FoundNothing
	if !answered || disturbed {
		all = append(all, perhaps)
	}
	if !answered {
		return all
	}
	s.Again = disturbed || slices.ContainsFunc(t.Calls[:i], func(b Call) bool { return b.Err != nil && b.Kind == c.Kind && b.Generation == c.Generation })
	s.Found = map[Found]spec.Found{FoundNothing: spec.Absent, FoundPending: spec.Waiting, FoundRunning: spec.Running}[c.Found]
	if !c.Due.IsZero() {
		s.Due = t.from(c.Due)
	}
	return append(all, s)
}

// run returns what was seen of a delivery, and of its end.
func (t *tracer) run(number int8, r *Run) []spec.Seen {
	early := t.claimed(r).Add(min(t.leased(r).Sub(t.claimed(r).Add(t.ttl)), 0))
	claim := spec.Seen{
		Kind: spec.SeenClaim, From: t.from(early), To: t.to(r.Delivered), Run: number, Instant: t.from(r.Activation), Began: t.from(r.Delivered),
		Claims: int8(r.Attempt), Failures: int8(r.Failures), Body: r.Generation + 1, Ended: t.held(r), //nolint:gosec // fewer than 128
	}
	end := spec.Seen{Kind: spec.SeenVerdict, Run: number, From: t.from(r.Delivered), To: spec.Never, Verdicts: t.verdicts(r)}
	ended := cmp.Or(r.SettleCalled, r.Ended)
	if !ended.IsZero() {
		end.From = t.from(ended)
	}
	switch disturbed := t.hit(r); {
	case r.Result == ResultAccepted:
		end.To = t.to(r.Settled)
	case r.Result == ResultRefused && !t.excused(t.ID, r) && !disturbed:
		end.Kind, end.To = spec.SeenRefusal, t.to(r.Settled)
	case disturbed || r.End == EndNone || r.End == EndCut || r.End == EndPanic || r.Result != ResultNone || !t.sole(r):
		end.Perhaps = true
	default:
		end.To = t.to(ended.Add(2 * t.ttl))
	}
	return []spec.Seen{claim, end}
}

// sole reports whether the call that gave the instant of a delivery is the last one: another
// may have ended its lease.
func (t *tracer) sole(r *Run) bool {
	return t.callOf(r) == len(t.Calls)-1 && !slices.ContainsFunc(t.Calls, func(c Call) bool { return c.Err != nil })
}

// held returns until when the lease of a delivery may have been extended.
func (t *tracer) held(r *Run) spec.Instant {
	if !r.Ended.IsZero() {
		return t.to(r.Ended.Add(2 * t.ttl))
	}
	if f, ok := t.find(r.Node, r.Delivered, r.Delivered.Add(time.Hour), Kill); ok {
		return t.to(f.To.Add(t.ttl))
	}
	return spec.Never
}

// hit reports whether a fault may have kept the verdict of a delivery from Redis.
func (t *tracer) hit(r *Run) bool {
	until := r.Ended.Add(2 * t.ttl)
	if r.Ended.IsZero() {
		until = r.Delivered.Add(2 * t.ttl)
	}
	return slices.ContainsFunc(t.faults, func(f Fault) bool {
		return (f.Target == r.Node || f.Target == "") && f.overlaps(r.Delivered.Add(-t.ttl), until)
	})
}

// verdicts returns those that a delivery may have ended with.
func (t *tracer) verdicts(r *Run) spec.Verdicts {
	all := map[End]spec.Verdicts{
		EndAck: spec.OneOf(spec.Ack), EndNack: spec.OneOf(spec.Nack), EndReject: spec.OneOf(spec.Reject), EndPanic: spec.OneOf(spec.Nack),
		EndNone: spec.OneOf(spec.Release), EndDraining: spec.OneOf(spec.Release, spec.Nack), EndCut: spec.OneOf(spec.Release, spec.Nack),
	}[r.End]
	all[spec.Reject] = all[spec.Reject] || t.Dead != "" && r.End != EndAck && r.End != EndNone
	all[spec.Release] = all[spec.Release] || r.Result != ResultAccepted && t.hit(r)
	return all
}
