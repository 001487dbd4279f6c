package dashboard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wakebell/wakebell/dashboard/internal/show"
	"github.com/wakebell/wakebell/internal/attended"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	schedulesPage = 50
	nextRuns      = 5
)

type schedulesData struct {
	Rows        []recurring.State
	Next, First string
}

// listSchedules reads a page of schedules and one more.
func (d *Dashboard) listSchedules(ctx context.Context, after string) (rows []recurring.State, err error) {
	for state, err := range d.op.Schedules.List(ctx, wakebelltype.Page{After: after, Limit: schedulesPage + 1}) {
		if err != nil {
			return nil, fmt.Errorf("list recurring schedules: %w", err)
		}
		rows = append(rows, state)
	}
	return rows, nil
}

func (d *Dashboard) schedulesPage(ctx context.Context, r *request) (page, error) {
	after := r.get("after")
	data := schedulesData{}
	var err error
	if data.Rows, err = d.listSchedules(ctx, after); err != nil {
		return page{}, err
	}
	if len(data.Rows) > schedulesPage {
		data.Rows = data.Rows[:schedulesPage]
		data.Next = d.link("schedules", "after", data.Rows[schedulesPage-1].Cursor)
	}
	if after != "" {
		data.First = d.link("schedules")
	}
	return page{
		template: "schedules", title: "Recurring schedules", section: "schedules", live: watching("schedules", "after", after), data: data,
	}, nil
}

// overdue says for how long a beat should have fired the next run; empty: none is overdue.
func overdue(s recurring.State) string {
	return attended.Unfired(s.Overdue)
}

// markSchedules is mark for schedules: for how long they are overdue grows by itself, so
// it counts only whether they are.
func markSchedules(states []recurring.State, err error) (string, error) {
	states = slices.Clone(states)
	var late []bool
	for i, s := range states {
		late = append(late, overdue(s) != "")
		states[i].Overdue = 0
	}
	text, err := mark(states, err)
	return fmt.Sprint(text, late), err
}

// run is an instant of a schedule in its zone.
type run struct {
	At   time.Time
	Zone string // the instant in the zone of the schedule
}

type scheduleData struct {
	State    recurring.State
	Zone     string
	Next     []run
	NextErr  error // why there is no preview
	Editable bool  // the form can represent the rule
	Past     attemptsData
}

func (d *Dashboard) schedulePage(ctx context.Context, r *request) (page, error) {
	name, err := r.required("name")
	if err != nil {
		return page{}, err
	}
	state, err := d.op.Schedules.Get(ctx, name)
	if err != nil {
		return page{}, fmt.Errorf("recurring schedule %s: %w", show.Short(64, name), err)
	}
	data := scheduleData{State: state, Zone: zoneName(state.Rule.Zone)}
	data.Editable = state.Fault == "" && !state.Celery && formable(state)
	if state.Fault == "" && !state.Paused {
		var instants []time.Time
		instants, data.NextErr = d.op.Schedules.Preview(ctx, name, nextRuns)
		data.Next = inZone(instants, state.Rule.Zone)
	}
	if !state.Celery {
		data.Past.Topic = state.Topic
		data.Past.Attempts, data.Past.Err = d.attemptsOfRuns(ctx, state.Topic, name)
	}
	return page{
		template: "schedule", title: "Recurring schedule " + name, section: "schedules", live: watching("schedule", "name", name), data: data,
	}, nil
}

func zoneName(zone string) string {
	if zone == "" {
		return "UTC"
	}
	return zone
}

func inZone(instants []time.Time, zone string) (runs []run) {
	location, err := time.LoadLocation(zone)
	if err != nil {
		location = time.UTC
	}
	for _, at := range instants {
		runs = append(runs, run{at, at.In(location).Format("Mon 2006-01-02 15:04:05 MST")})
	}
	return runs
}

// everyOf returns the interval of a rule, which only its text has.
func everyOf(s recurring.State) string {
	every, ok := strings.CutPrefix(s.RuleText, "every ")
	if !ok {
		return ""
	}
	if _, err := time.ParseDuration(every); err != nil {
		return ""
	}
	return every
}

// formable reports whether the form of the editor can represent a schedule.
func formable(s recurring.State) bool {
	return s.Rule.Cron != "" || s.Rule.RRule != "" || everyOf(s) != ""
}
