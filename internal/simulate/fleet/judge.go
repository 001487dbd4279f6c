package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// judge checks what is recorded against the promises of docs/guarantees.md. It runs when all
// processes have ended.
type judge struct {
	record *record
	plan   *Plan
	broken []Broken
	runs   map[string][]*run // by body
}

func (f *fleet) result(began time.Time, left map[string]int64) Result {
	f.record.mu.Lock()
	defer f.record.mu.Unlock()
	j := &judge{record: &f.record, plan: f.plan, runs: map[string][]*run{}}
	for _, r := range f.record.runs {
		j.runs[r.body] = append(j.runs[r.body], r)
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		j.breaks("delivered at least once", "%d are left in %s at rest", left[name], name)
	}
	for _, what := range f.record.trouble {
		j.breaks("answers", "%s", what)
	}
	j.forget()
	j.judgeRuns()
	j.judgeWrites()
	j.judgeKeys()
	j.judgeTurns()
	j.judgeReminders()
	j.judgeSeries()
	j.judgeJoins()
	return Result{
		Broken: j.broken, Virtual: time.Since(began), Writes: len(f.record.writes), Runs: len(f.record.runs),
		Turns: len(f.record.turns), Arrived: len(f.record.arrived), Faults: len(f.record.faults), Trace: f.record.lines,
	}
}

func (j *judge) breaks(promise, format string, args ...any) {
	j.broken = append(j.broken, Broken{promise, fmt.Sprintf(format, args...)})
}

// disturbed reports whether something was wrong at some time between two instants, or shortly
// before: links are dialled again, and leases expire.
func (j *judge) disturbed(from, to time.Time) bool {
	return slices.ContainsFunc(j.record.faults, func(s *span) bool {
		return !s.from.After(to) && (s.to.IsZero() || !s.to.Add(calmAfter).Before(from))
	})
}

// calmAfter is how long after a fault its consequences are excused.
const calmAfter = 10 * time.Second

// settling is how long a verdict takes, to Redis and back.
const settling = time.Second

// judgeRuns checks the handlers of each write.
func (j *judge) judgeRuns() {
	for _, body := range slices.Sorted(maps.Keys(j.runs)) {
		runs := j.runs[body]
		for i, r := range runs {
			var again *run
			for _, next := range runs[i+1:] {
				if next.subject == r.subject && again == nil {
					again = next
				}
				if next.subject == r.subject && next.from.Before(j.over(r)) && !j.sentAgain(r) && !j.sentAgain(next) && !j.lost(r.taken().Add(-leaseTTL), next.from) {
					j.breaks("one handler at a time", "%s runs %s %s at %v beside %s from %v to %v",
						next.at, r.subject, body, clock(next.from), r.at, clock(r.from), clock(j.over(r)))
				}
			}
			j.judgePulled(r, runs)
			if again != nil && r.acked && !j.disturbed(r.from, r.settled().Add(settling)) {
				j.breaks("repeated only with a cause", "%s acked %s %s at %v, and %s runs it at %v",
					r.at, r.subject, body, clock(r.to), again.at, clock(again.from))
			}
		}
	}
}

// over returns when a run was over for others. The lease of a handler that goes on when its
// subscription has ended is not released but expires: in half of its duration at the earliest, unless
// its extension was hindered.
func (j *judge) over(r *run) time.Time {
	end := r.end()
	hindered := slices.ContainsFunc(j.record.faults, func(s *span) bool {
		concerns := strings.Contains(s.name, r.at) || strings.Contains(s.name, r.of) || strings.Contains(s.name, "Redis")
		return concerns && s.from.Before(r.lost) && (s.to.IsZero() || !s.to.Add(leaseTTL).Before(r.from))
	})
	if !r.goesOn || !r.left || hindered {
		return end
	}
	if expiry := r.lost.Add(leaseTTL / 2); !r.over || r.to.After(expiry) {
		return expiry
	}
	return micros(r.to)
}

// judgePulled checks what the node has answered a consumer over HTTP. A verdict after the end of
// the lease that the consumer knows may be accepted, because a node verifies leases by extending them.
func (j *judge) judgePulled(r *run, runs []*run) {
	if r.received.IsZero() {
		return
	}
	// One that was claimed early waits for its instant, and may be extended meanwhile.
	atOnce := r.received.Sub(r.taken()) < 25*time.Millisecond && !j.disturbed(r.taken(), r.received)
	if atOnce && r.promised.Add(-2*usual).After(r.expires) {
		j.breaks("a lease lasts as long as its answer says", "%s has %s %s until %v, and it expires at %v",
			r.at, r.subject, r.body, clock(r.promised), clock(r.expires))
	}
	if !r.accepted || j.lost(r.taken(), r.sent) {
		return
	}
	for _, other := range runs {
		if other.subject == r.subject && other.from.After(r.from) && other.from.Before(r.sent) && !j.sentAgain(r) {
			j.breaks("settled only by its holder", "the verdict of %s about %s %s is accepted at %v, and %s has it since %v",
				r.at, r.subject, r.body, clock(r.sent), other.at, clock(other.from))
		}
	}
}

// sentAgain reports whether a run may be one of two timers: a schedule that is sent again replaces
// its own timer, which may have been due before. The lease of that one may arrive last, over a slow link.
func (j *judge) sentAgain(r *run) bool {
	return slices.ContainsFunc(j.record.writes, func(w *write) bool { return w.body == r.body && !w.single && !w.to.Before(r.taken()) })
}

func clock(t time.Time) string { return t.Format("15:04:05.000000") }

// judgeWrites checks what has become of each write.
func (j *judge) judgeWrites() {
	subjects := map[string][]*write{}
	for _, w := range j.record.writes {
		subjects[w.subject] = append(subjects[w.subject], w)
		if w.body == "" {
			continue
		}
		runs := j.runs[w.body]
		seen := map[string]bool{}
		for _, r := range runs {
			seen[r.subject] = true
			if r.from.Before(w.due) {
				j.breaks("never early", "%s runs %s %s at %v, due %v at the earliest", r.at, r.subject, w.body, clock(r.from), clock(w.due))
			}
		}
		if w.result == refused && len(runs) > 0 {
			j.breaks("answers", "the write of %s %s was refused, and it runs", w.subject, w.body)
		}
		if w.single && len(seen) > 1 {
			j.breaks("calls are idempotent", "%s has %d timers", w.body, len(seen))
		}
		if idOf(w.subject) == "" && w.result == done {
			j.delivered(w)
		}
	}
	for _, subject := range slices.Sorted(maps.Keys(subjects)) {
		if idOf(subject) != "" {
			j.judgeSubject(subjects[subject])
		}
	}
}

// delivered checks that a write that counts has reached a handler that acked it.
func (j *judge) delivered(w *write) {
	if !slices.ContainsFunc(j.runs[w.body], func(r *run) bool { return r.handled }) {
		j.breaks("delivered at least once", "%s %s, written by %s, was not handled", w.subject, w.body, w.path)
	}
}

// judgeSubject checks the writes of one id, which were made one after the other. After one whose
// outcome is unknown there is nothing to say: it may have its effect later.
func (j *judge) judgeSubject(writes []*write) {
	for i, w := range writes {
		if w.result == unknown {
			return
		}
		last := i == len(writes)-1
		for k := i - 1; k >= 0 && w.result == done && w.pending; k-- {
			if before := writes[k]; before.body != "" && before.result == done {
				j.doesNotBegin(before, w)
				break // the ones before that one are replaced by it
			}
		}
		if last && w.body != "" && w.result == done {
			j.delivered(w)
		}
	}
}

// doesNotBegin checks that a timer that was found pending by a later write did not begin after it.
func (j *judge) doesNotBegin(w, by *write) {
	for _, r := range j.runs[w.body] {
		if r.from.After(by.to) {
			j.breaks("a cancelled timer does not begin", "%s %s begins at %v, but %s found it pending and removed it by %v",
				w.subject, w.body, clock(r.from), by.path, clock(by.to))
		}
	}
}
