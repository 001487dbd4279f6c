package convert

import (
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/recurring"
)

// RecurringMessage converts a recurring schedule. Errors are those of
// Schedule.Validate.
func RecurringMessage(r recurring.Schedule) (*messages.Recurring, error) {
	if err := r.Validate(); err != nil {
		return nil, fmt.Errorf("recurring schedule %s: %w", argument.Quote(r.Name), err)
	}
	m := &messages.Recurring{Name: r.Name, Topic: r.Topic, When: ruleMessage(r.Rule), Body: r.Body, ContentType: r.ContentType}
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

// ruleMessage converts all but Every and Crontab.
func ruleMessage(w recurring.Rule) *messages.Recurrence {
	m := &messages.Recurrence{
		Relative: w.Relative, Zone: text.Valid(w.Zone), SkipGaps: w.SkipGaps,
		Start: Timestamp(w.Start), Until: Timestamp(w.Until), MaxRuns: w.MaxRuns,
		Misfire: text.Valid(string(w.Misfire)), MisfireLimit: Count(w.MisfireLimit), Overlap: text.Valid(string(w.Overlap)),
		Headers: map[string]string{},
	}
	if w.Jitter != 0 {
		m.Jitter = durationpb.New(w.Jitter)
	}
	switch {
	case w.Cron != "":
		m.Rule = &messages.Recurrence_Cron{Cron: text.Valid(w.Cron)}
	case w.RRule != "":
		m.Rule = &messages.Recurrence_Rrule{Rrule: text.Valid(w.RRule)}
	}
	for key, value := range w.Headers {
		m.Headers[text.Valid(key)] = text.Valid(value)
	}
	return m
}

// Recurring converts a message. Its errors are in Err, which Schedules.Put
// returns.
func Recurring(m *messages.Recurring) recurring.Schedule {
	r := recurring.Schedule{Name: m.GetName(), Topic: m.GetTopic(), Body: m.GetBody(), ContentType: m.GetContentType()}
	r.Rule, r.Err = ruleOf(m.GetWhen())
	if c := m.GetCelery(); c != nil {
		r.Celery = &recurring.CeleryTask{Args: c.GetArgs(), Kwargs: c.GetKwargs(), Options: c.GetOptions()}
	}
	return r
}

func ruleOf(m *messages.Recurrence) (recurring.Rule, error) {
	w := recurring.Rule{
		Relative: m.GetRelative(), Zone: m.GetZone(), SkipGaps: m.GetSkipGaps(), MaxRuns: m.GetMaxRuns(),
		Misfire: recurring.Misfire(m.GetMisfire()), MisfireLimit: int(min(m.GetMisfireLimit(), math.MaxInt32)),
		Overlap: recurring.Overlap(m.GetOverlap()), Headers: m.GetHeaders(),
	}
	switch rule := m.GetRule().(type) {
	case *messages.Recurrence_Every:
		w.Every = rule.Every.AsDuration()
		if durationpb.New(w.Every).GetSeconds() != rule.Every.GetSeconds() {
			return w, argument.Invalid("every", "%d s, want 1 µs to 100 years", rule.Every.GetSeconds())
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
		*bound.to, err = Instant(bound.field, bound.from)
	}
	return w, err
}

// RecurringStateMessage converts a stored schedule.
func RecurringStateMessage(s recurring.State) *messages.RecurringState {
	m := &messages.RecurringState{
		Name: text.Valid(s.Name), Topic: text.Valid(s.Topic), Rule: text.Valid(s.RuleText), Recurrence: ruleMessage(s.Rule),
		Next: Timestamp(s.Next), LastRun: Timestamp(s.LastRun), Runs: s.Runs, Paused: s.Paused, Celery: s.Celery,
		Fault: text.Valid(s.Fault),
	}
	if s.Overdue > 0 {
		m.Overdue = durationpb.New(s.Overdue)
	}
	return m
}

// RecurringState converts an answer of the gateway.
func RecurringState(m *messages.RecurringState) recurring.State {
	s := recurring.State{
		Name: m.GetName(), Topic: m.GetTopic(), RuleText: m.GetRule(), Next: Time(m.GetNext()), LastRun: Time(m.GetLastRun()),
		Runs: m.GetRuns(), Paused: m.GetPaused(), Celery: m.GetCelery(), Fault: m.GetFault(),
		Overdue: m.GetOverdue().AsDuration(),
	}
	s.Rule, _ = ruleOf(m.GetRecurrence()) // the node has checked the instants
	if len(s.Rule.Headers) == 0 {
		s.Rule.Headers = nil
	}
	return s
}
