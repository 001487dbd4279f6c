package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
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
	j.judgeRuns()
	j.judgeWrites()
	j.judgeKeys()
	j.judgeTurns()
	j.judgeReminders()
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
			for _, next := range runs[i+1:] {
				if next.subject == r.subject && next.from.Before(r.end()) && !j.sentAgain(r) {
					j.breaks("one handler at a time", "%s runs %s %s at %v beside %s from %v to %v",
						next.at, r.subject, body, clock(next.from), r.at, clock(r.from), clock(r.end()))
				}
			}
			if i+1 < len(runs) && r.acked && !j.disturbed(r.from, r.to.Add(settling)) {
				j.breaks("repeated only with a cause", "%s acked %s %s at %v, and %s runs it at %v",
					r.at, r.subject, body, clock(r.to), runs[i+1].at, clock(runs[i+1].from))
			}
		}
	}
}

// sentAgain reports whether a run may be one of two timers: a schedule that is sent again replaces
// its own timer, which may have been due before.
func (j *judge) sentAgain(r *run) bool {
	return slices.ContainsFunc(j.record.writes, func(w *write) bool { return w.body == r.body && !w.single && !w.to.Before(r.from) })
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
	if !slices.ContainsFunc(j.runs[w.body], func(r *run) bool { return r.acked }) {
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

// judgeKeys checks the order of keys: while an earlier timer is due, leased or waits for its retry,
// no later one begins.
func (j *judge) judgeKeys() {
	if !j.plan.Keys {
		return
	}
	byKey := map[string][]*write{}
	for _, w := range j.record.writes {
		if w.key != "" && w.body != "" {
			name := topicOf(w.subject) + " " + w.key
			byKey[name] = append(byKey[name], w)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		j.judgeKey(key, byKey[key])
	}
}

func (j *judge) judgeKey(key string, writes []*write) {
	var runs []*run
	for _, w := range writes {
		runs = append(runs, j.runs[w.body]...)
	}
	slices.SortStableFunc(runs, func(a, b *run) int { return a.from.Compare(b.from) })
	for i, r := range runs {
		for _, next := range runs[i+1:] {
			if next.from.Before(r.end()) && next.subject != r.subject && !j.rewritten(r) {
				j.breaks("one at a time by key", "%s %s begins at %v beside %s %s, %v to %v, of %s",
					next.subject, next.body, clock(next.from), r.subject, r.body, clock(r.from), clock(r.end()), key)
			}
		}
	}
	for _, a := range writes {
		acked := j.sole(a)
		if acked == nil {
			continue
		}
		for _, b := range writes {
			if b.result == done && b.until.After(a.until) && len(j.runs[b.body]) > 0 {
				if first := j.runs[b.body][0]; first.from.Before(*acked) && a.to.Add(leaseTTL+settling).Before(first.from) {
					j.breaks("in order by key", "%s %s begins at %v, before %s %s of %s, which is due earlier, was acked at %v",
						b.subject, b.body, clock(first.from), a.subject, a.body, key, clock(*acked))
				}
			}
		}
	}
}

// rewritten reports whether a timer was cancelled or scheduled again while its handler ran, which frees
// its key.
func (j *judge) rewritten(r *run) bool {
	return slices.ContainsFunc(j.record.writes, func(w *write) bool {
		return w.subject == r.subject && w.body != r.body && w.from.Before(r.end()) && !w.to.Before(r.from)
	})
}

// sole returns when a write was acked first; nil: it was not, or is not the only one of its id.
func (j *judge) sole(w *write) *time.Time {
	if w.result != done {
		return nil
	}
	for _, other := range j.record.writes {
		if other != w && other.subject == w.subject && !other.to.Before(w.from) && other.from.Before(w.until.Add(patience)) {
			return nil
		}
		if other != w && other.subject == w.subject && other.result == unknown {
			return nil
		}
	}
	for _, r := range j.runs[w.body] {
		if r.acked {
			return &r.to
		}
	}
	return nil
}

// judgeTurns checks the turns of each gate.
func (j *judge) judgeTurns() {
	turns := slices.SortedStableFunc(slices.Values(j.record.turns), func(a, b *turn) int {
		return cmp.Or(cmp.Compare(a.gate, b.gate), a.from.Compare(b.from))
	})
	for i, t := range turns {
		for _, next := range turns[i+1:] {
			if next.gate != t.gate {
				break
			}
			if t.to.IsZero() || next.from.Before(t.to) {
				j.breaks("one turn at a time", "%s has turn %d at %s from %v, beside %s with %d, %v to %v",
					next.at, next.fence, t.gate, clock(next.from), t.at, t.fence, clock(t.from), clock(t.to))
			}
			if next.fence <= t.fence {
				j.breaks("tokens only grow", "at %s, %d comes after %d", t.gate, next.fence, t.fence)
			}
		}
	}
	for _, a := range j.record.guards {
		for _, b := range j.record.guards {
			if a.gate == b.gate && a.accepted && b.accepted && a.to.Before(b.from) && b.fence < a.fence {
				j.breaks("a guard accepts no older token", "at %s, %d after %d", a.gate, b.fence, a.fence)
			}
		}
	}
}

// judgeReminders checks the reminders of each actor.
func (j *judge) judgeReminders() {
	byName := map[string][]*alarm{}
	for _, a := range j.record.alarms {
		byName[a.cart+" "+a.name] = append(byName[a.cart+" "+a.name], a)
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		alarms := byName[name]
		for i, a := range alarms {
			j.judgeReminder(a, alarms[i+1:])
			if a.result == unknown {
				break
			}
		}
	}
}

// judgeReminder checks one reminder, which later calls remove or replace. One that had begun before
// may arrive for as long as its lease is valid.
func (j *judge) judgeReminder(a *alarm, later []*alarm) {
	if a.body == "" {
		return
	}
	over := time.Time{}
	for _, l := range later {
		if l.result == done {
			over = l.to.Add(reminderLease)
			break
		}
	}
	acked := false
	for _, got := range j.record.arrived {
		if got.body != a.body {
			continue
		}
		acked = acked || got.acked
		if got.at.Before(a.due) {
			j.breaks("never early", "%s gets reminder %s %s at %v, due %v", a.cart, a.name, a.body, clock(got.at), clock(a.due))
		}
		if !over.IsZero() && got.at.After(over) {
			j.breaks("one reminder for each actor and name", "%s gets reminder %s %s at %v, which was replaced or removed by %v",
				a.cart, a.name, a.body, clock(got.at), clock(over))
		}
	}
	if len(later) == 0 && a.result == done && !acked {
		j.breaks("delivered at least once", "%s has not acknowledged reminder %s %s", a.cart, a.name, a.body)
	}
}

// reminderLease is the lease of a reminder, the default of topics.
const reminderLease = 30 * time.Second
