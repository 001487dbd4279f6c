package faults

import (
	"slices"
	"strings"
)

// JudgeMessages applies the rules for messages of a queue that Judge does not have;
// the package's documentation has them. deadLetters has the message ids of all dead
// letters by deduplication key.
func (l *DeliveryLog) JudgeMessages(deadLetters map[string][]string) *Judgement {
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
		j.violations = nil
		j.duplicates(t, deadLetters[key])
		j.denied(t)
		j.restarted(t)
		j.deadLetter(t, len(deadLetters[key]))
		if len(j.violations) > 0 {
			j.Violations = append(j.Violations, strings.Join(j.violations, "; ")+"\n"+t.History(l.faults))
		}
	}
	for key := range deadLetters {
		if l.timers[key] == nil {
			j.violation(&j.Illegal, "a dead letter of %q, which was not published", key)
			j.Violations = append(j.Violations, j.violations[len(j.violations)-1])
		}
	}
	return j.Judgement
}

// duplicates judges whether a key stood for two messages within its window, by the
// answers of publishes, the deliveries and the dead letters.
func (j *judge) duplicates(t *Timer, deadLetters []string) {
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
	for _, id := range deadLetters {
		note(id)
	}
	if len(ids) > 1 {
		j.violation(&j.Uncaused, "published %d times: %s", len(ids), strings.Join(ids, ", "))
	}
	if len(deadLetters) > 1 {
		j.violation(&j.Uncaused, "%d dead letters", len(deadLetters))
	}
}

// denied judges whether all publishes of a key were answered, and none as new. A
// draft without an answer may have been the new one.
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
		j.violation(&j.Illegal, "every publish was answered as a duplicate")
	}
}

// restarted judges whether the delivery count of a message started again.
func (j *judge) restarted(t *Timer) {
	slices.SortStableFunc(t.Runs, func(a, b *Run) int { return a.Delivered.Compare(b.Delivered) })
	for i, r := range t.Runs[min(1, len(t.Runs)):] {
		if last := t.Runs[i]; r.Message == last.Message && r.Attempt <= last.Attempt {
			j.violation(&j.Illegal, "attempt %d came after attempt %d", r.Attempt, last.Attempt)
		}
	}
}

// deadLetter judges whether the dead letters of a message match the rejections of
// its handlers. No body of the scenario fails until its attempts are used up.
func (j *judge) deadLetter(t *Timer, deadLetters int) {
	rejected := slices.ContainsFunc(t.Runs, func(r *Run) bool { return r.End == EndReject })
	switch {
	case rejected && deadLetters == 0:
		j.violation(&j.Lost, "rejected, without a dead letter")
	case !rejected && deadLetters > 0:
		j.violation(&j.Illegal, "a dead letter without a rejection (%s)", t.Dead)
	}
}
