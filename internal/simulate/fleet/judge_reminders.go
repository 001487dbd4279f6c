package fleet

import (
	"maps"
	"slices"
	"time"
)

// judgeReminders checks the reminders of each actor.
func (j *judge) judgeReminders() {
	byName := map[string][]*alarm{}
	for _, a := range j.record.alarms {
		byName[a.subject()] = append(byName[a.subject()], a)
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
