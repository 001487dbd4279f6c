package faults

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// entry is a line of a history.
type entry struct {
	at   time.Time
	text string
}

// History describes the events of a timer and the faults during them, a line each.
func (t *Timer) History(faults []Fault) string {
	entries := t.entries()
	if len(entries) == 0 {
		return "  timer " + t.ID + ": no events\n"
	}
	from, to := entries[0].at, entries[0].at
	for _, e := range entries {
		if e.at.Before(from) {
			from = e.at
		}
		if e.at.After(to) {
			to = e.at
		}
	}
	for _, f := range faults {
		if f.Words != nil && !slices.Contains(f.Words, t.ID) || !f.overlaps(from, to) {
			continue
		}
		entries = append(entries, entry{f.From, fmt.Sprintf("fault: %s of %q until %s", f.Kind, f.Target, clock(f.To))})
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return a.at.Compare(b.at) })
	var b strings.Builder
	fmt.Fprintf(&b, "  timer %s\n", t.ID)
	for _, e := range entries {
		fmt.Fprintf(&b, "    %s %s\n", clock(e.at), e.text)
	}
	if t.Dead != "" {
		fmt.Fprintf(&b, "    dead letter: %s\n", t.Dead)
	}
	return b.String()
}

func (t *Timer) entries() []entry {
	var all []entry
	add := func(at time.Time, format string, args ...any) {
		if !at.IsZero() {
			all = append(all, entry{at, fmt.Sprintf(format, args...)})
		}
	}
	for _, c := range t.Calls {
		name := fmt.Sprintf("%s of generation %d by %s", c.Kind, c.Generation, c.Client)
		add(c.Called, "%s", name)
		if c.Err != nil {
			add(c.Returned, "%s: %v", name, c.Err)
			continue
		}
		add(c.Returned, "%s: found %s, due %s", name, c.Found, clock(c.Due))
	}
	for _, r := range t.Runs {
		name := fmt.Sprintf("%s, generation %d, attempt %d", r.Node, r.Generation, r.Attempt)
		add(r.Delivered, "delivered to %s, %d failures, activation %s", name, r.Failures, clock(r.Activation))
		add(r.SettleCalled, "settles: %s", name)
		add(r.Settled, "settlement %s: %s", r.Result, name)
		add(r.Ended, "%s: %s", r.End, name)
	}
	return all
}
