package faults

import (
	"slices"
	"strings"
)

// JudgeMessages judges what only messages of a queue have, beside what Judge
// finds; the package's documentation has the rules. Letters are the ids of the
// messages that became dead letters, by their keys, one for each letter.
func (l *Ledger) JudgeMessages(letters map[string][]string) *Judgement {
	l.mu.Lock()
	defer l.mu.Unlock()
	keys := make([]string, 0, len(l.timers))
	for key := range l.timers {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	j := &judge{Judgement: &Judgement{}}
	for _, key := range keys {
		t := l.timers[key]
		j.wrongs = nil
		j.doubled(t, letters[key])
		j.denied(t)
		j.restarted(t)
		j.buried(t, len(letters[key]))
		if len(j.wrongs) > 0 {
			j.Violations = append(j.Violations, strings.Join(j.wrongs, "; ")+"\n"+t.History(l.faults))
		}
	}
	for key := range letters {
		if l.timers[key] == nil {
			j.wrong(&j.Illegal, "a dead letter of %q, which nobody published", key)
			j.Violations = append(j.Violations, j.wrongs[len(j.wrongs)-1])
		}
	}
	return j.Judgement
}

// doubled: a key has stood for two messages within its window, by what publishes
// answered, handlers saw or dead letters tell.
func (j *judge) doubled(t *Timer, letters []string) {
	var ids []string
	note := func(id string) {
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, c := range t.Calls {
		note(c.Message)
	}
	for _, r := range t.Runs {
		note(r.Message)
	}
	for _, id := range letters {
		note(id)
	}
	if len(ids) > 1 {
		j.wrong(&j.Uncaused, "published %d times: %s", len(ids), strings.Join(ids, ", "))
	}
	if len(letters) > 1 {
		j.wrong(&j.Uncaused, "%d dead letters", len(letters))
	}
}

// denied: all that was published of a key was answered, and nothing as new. A
// draft that has got no answer may have been the one.
func (j *judge) denied(t *Timer) {
	type draft struct {
		client string
		number int
	}
	fresh, answered := false, map[draft]bool{}
	for _, c := range t.Calls {
		d := draft{c.Client, c.Draft}
		answered[d] = answered[d] || c.Err == nil
		fresh = fresh || c.Err == nil && c.Found == FoundNothing
	}
	for _, ok := range answered {
		if !ok {
			return
		}
	}
	if !fresh && len(answered) > 0 {
		j.wrong(&j.Illegal, "answered as a duplicate by all that was published")
	}
}

// restarted: deliveries are counted on for as long as there is a message.
func (j *judge) restarted(t *Timer) {
	slices.SortStableFunc(t.Runs, func(a, b *Run) int { return a.Delivered.Compare(b.Delivered) })
	for i, r := range t.Runs[min(1, len(t.Runs)):] {
		if last := t.Runs[i]; r.Message == last.Message && r.Attempt <= last.Attempt {
			j.wrong(&j.Illegal, "attempt %d came after attempt %d", r.Attempt, last.Attempt)
		}
	}
}

// buried: a dead letter is of what a handler rejected, and the other way round.
// No body of the scenario fails until its message was tried too often.
func (j *judge) buried(t *Timer, letters int) {
	rejected := slices.ContainsFunc(t.Runs, func(r *Run) bool { return r.End == EndReject })
	switch {
	case rejected && letters == 0:
		j.wrong(&j.Lost, "rejected, and there is no dead letter")
	case !rejected && letters > 0:
		j.wrong(&j.Illegal, "a dead letter, and no handler had rejected it (%s)", t.Dead)
	}
}
