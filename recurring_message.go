package wakebell

import (
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/recurring"
)

// RecurringMessage is a recurring schedule as it travels to the gateway, in a
// *messages.PutRecurring. Errors are those that Schedules.Put finds without
// Redis.
func RecurringMessage(r recurring.Schedule) (*messages.Recurring, error) {
	if err := r.Validate(); err != nil {
		return nil, fmt.Errorf("recurring schedule %s: %w", clip(r.Name), err)
	}
	m := &messages.Recurring{Name: r.Name, Topic: r.Topic, When: recurrenceMessage(r.Rule), Body: r.Body, ContentType: r.ContentType}
	switch w := r.Rule; {
	case w.Every != 0:
		m.When.Rule = &messages.Recurrence_Every{Every: durationpb.New(w.Every)}
	case w.Crontab != nil:
		m.When.Rule = &messages.Recurrence_Crontab{Crontab: &messages.Crontab{
			Minute: w.Crontab.Minute, Hour: w.Crontab.Hour, DayOfWeek: w.Crontab.DayOfWeek,
			DayOfMonth: w.Crontab.DayOfMonth, Month: w.Crontab.Month,
		}}
	}
	if c := r.Celery; c != nil {
		m.Celery = &messages.CeleryMessage{Args: c.Args, Kwargs: c.Kwargs, Options: c.Options}
	}
	return m, nil
}

// recurrenceMessage has all but a rule that is not text.
func recurrenceMessage(w recurring.Rule) *messages.Recurrence {
	m := &messages.Recurrence{
		Relative: w.Relative, Zone: utf8(w.Zone), SkipGaps: w.SkipGaps,
		Start: timestamp(w.Start), Until: timestamp(w.Until), MaxRuns: w.MaxRuns,
		Misfire: utf8(string(w.Misfire)), MisfireLimit: count(w.MisfireLimit), Overlap: utf8(string(w.Overlap)),
		Headers: map[string]string{},
	}
	if w.Jitter != 0 {
		m.Jitter = durationpb.New(w.Jitter)
	}
	switch {
	case w.Cron != "":
		m.Rule = &messages.Recurrence_Cron{Cron: utf8(w.Cron)}
	case w.RRule != "":
		m.Rule = &messages.Recurrence_Rrule{Rrule: utf8(w.RRule)}
	}
	for key, value := range w.Headers {
		m.Headers[utf8(key)] = utf8(value)
	}
	return m
}

// recurringOf is what a message puts; what is wrong with it is said by Put.
func recurringOf(m *messages.Recurring) recurring.Schedule {
	r := recurring.Schedule{Name: m.GetName(), Topic: m.GetTopic(), Body: m.GetBody(), ContentType: m.GetContentType()}
	r.Rule, r.Err = recurrenceOf(m.GetWhen())
	if c := m.GetCelery(); c != nil {
		r.Celery = &recurring.CeleryTask{Args: c.GetArgs(), Kwargs: c.GetKwargs(), Options: c.GetOptions()}
	}
	return r
}

func recurrenceOf(m *messages.Recurrence) (recurring.Rule, error) {
	w := recurring.Rule{
		Relative: m.GetRelative(), Zone: m.GetZone(), SkipGaps: m.GetSkipGaps(), MaxRuns: m.GetMaxRuns(),
		Misfire: recurring.Misfire(m.GetMisfire()), MisfireLimit: int(min(m.GetMisfireLimit(), math.MaxInt32)),
		Overlap: recurring.Overlap(m.GetOverlap()), Headers: m.GetHeaders(),
	}
	switch rule := m.GetRule().(type) {
	case *messages.Recurrence_Every:
		w.Every = rule.Every.AsDuration()
		if durationpb.New(w.Every).GetSeconds() != rule.Every.GetSeconds() {
			return w, invalid("every", "%d s, want 1 µs to 100 years", rule.Every.GetSeconds())
		}
	case *messages.Recurrence_Cron:
		w.Cron = rule.Cron
	case *messages.Recurrence_Crontab:
		c := rule.Crontab
		w.Crontab = &recurring.Crontab{
			Minute: c.GetMinute(), Hour: c.GetHour(), DayOfWeek: c.GetDayOfWeek(),
			DayOfMonth: c.GetDayOfMonth(), Month: c.GetMonth(),
		}
	case *messages.Recurrence_Rrule:
		w.RRule = rule.Rrule
	}
	w.Jitter = m.GetJitter().AsDuration()
	var err error
	for _, bound := range []struct {
		field string
		from  *timestamppb.Timestamp
		to    *time.Time
	}{{"start", m.GetStart(), &w.Start}, {"until", m.GetUntil(), &w.Until}} {
		if bound.from == nil || err != nil {
			continue
		}
		*bound.to, err = instant(bound.field, bound.from)
	}
	return w, err
}

func recurringStateMessage(s recurring.State) *messages.RecurringState {
	return &messages.RecurringState{
		Name: utf8(s.Name), Topic: utf8(s.Topic), Rule: utf8(s.Rule), Recurrence: recurrenceMessage(s.Recurrence),
		Next: timestamp(s.Next), LastRun: timestamp(s.LastRun), Runs: s.Runs, Paused: s.Paused, Celery: s.Celery,
		Fault: utf8(s.Fault),
	}
}

// RecurringStateOf is what the gateway answers of a recurring schedule, as
// Schedules.Get answers it.
func RecurringStateOf(m *messages.RecurringState) recurring.State {
	s := recurring.State{
		Name: m.GetName(), Topic: m.GetTopic(), Rule: m.GetRule(), Next: timeOf(m.GetNext()), LastRun: timeOf(m.GetLastRun()),
		Runs: m.GetRuns(), Paused: m.GetPaused(), Celery: m.GetCelery(), Fault: m.GetFault(),
	}
	s.Recurrence, _ = recurrenceOf(m.GetRecurrence()) // of a node, whose instants are sound
	if len(s.Recurrence.Headers) == 0 {
		s.Recurrence.Headers = nil
	}
	return s
}

// timeOf is a timestamp, or zero where it is absent.
func timeOf(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}
