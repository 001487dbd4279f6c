package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/dashboard/internal/jobs"
	"github.com/wakebell/wakebell/dashboard/internal/show"
	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/recurring"
)

func (d *Dashboard) scheduleActions() map[string]action {
	return map[string]action{
		"put-schedule":    {"schedules", d.askPut, d.doPut},
		"pause-schedule":  {"schedules", d.aboutSchedule("Pause", "No run is fired until it is resumed.", false), d.onSchedule(recurring.Operator.Pause, "The schedule is paused.")},
		"resume-schedule": {"schedules", d.aboutSchedule("Resume", "It continues with its next instant. Runs during the pause do not count as missed.", false), d.onSchedule(recurring.Operator.Resume, "The schedule is resumed.")},
		"delete-schedule": {"schedules", d.aboutSchedule("Delete", "This deletes the schedule, for good. Timers that it fired stay.", true), d.doDeleteSchedule},
		"run-schedule":    {"schedules", d.aboutSchedule("Run now", "This fires 1 run, in addition to its instants.", false), d.doRunSchedule},
		"backfill":        {"schedules", d.askBackfill, d.doBackfill},
	}
}

func (d *Dashboard) scheduleLink(r *request) string { return d.link("schedule", "name", r.get("name")) }

func (d *Dashboard) aboutSchedule(verb, effect string, danger bool) func(context.Context, *request) (question, error) {
	return func(ctx context.Context, r *request) (question, error) {
		s, err := d.op.Schedules.Get(ctx, r.get("name"))
		return question{
			Title: verb + ": schedule " + show.Short(64, r.get("name")), Button: verb, Danger: danger, Back: d.scheduleLink(r),
			Text: []string{fmt.Sprintf("1 recurring schedule: %s, %s so far.", show.Short(200, s.RuleText), show.Things(s.Runs, "run")), effect},
		}, err
	}
}

func (d *Dashboard) onSchedule(do func(recurring.Operator, context.Context, string) error, text string) func(context.Context, *request, url.Values) (result, error) {
	return func(ctx context.Context, r *request, _ url.Values) (result, error) {
		return result{text: text, to: d.scheduleLink(r)}, do(d.op.Schedules, ctx, r.get("name"))
	}
}

func (d *Dashboard) doDeleteSchedule(ctx context.Context, r *request, _ url.Values) (result, error) {
	return result{text: "The schedule is deleted.", to: d.link("schedules")}, d.op.Schedules.Delete(ctx, r.get("name"))
}

func (d *Dashboard) doRunSchedule(ctx context.Context, r *request, _ url.Values) (result, error) {
	run, err := d.op.Schedules.RunNow(ctx, r.get("name"))
	return result{text: fmt.Sprintf("Run %d is fired.", run.Number), to: d.scheduleLink(r)}, err
}

func (d *Dashboard) askBackfill(ctx context.Context, r *request) (question, error) {
	q, err := d.aboutSchedule("Backfill", "This fires all instants of the period, whether they were fired before or not: at most 10,000. Their number is shown before they are fired.", false)(ctx, r)
	q.Fields = []field{
		{Name: "from", Label: "From", Hint: "An instant such as 2031-01-02T00:00:00Z; included.", Required: true},
		{Name: "to", Label: "To", Hint: "An instant; not included.", Required: true},
	}
	return q, err
}

func (d *Dashboard) doBackfill(ctx context.Context, r *request, form url.Values) (result, error) {
	from, err := instant("from", form.Get("from"))
	if err != nil {
		return result{}, err
	}
	to, err := instant("to", form.Get("to"))
	if err != nil {
		return result{}, err
	}
	name := r.get("name")
	instants, err := d.op.Schedules.Instants(ctx, name, from, to)
	if err != nil {
		return result{}, err
	}
	runs := int64(len(instants))
	if confirm := fmt.Sprintf("fire-%d", runs); runs == 0 || form.Get(confirm) == "" {
		q, err := d.askBackfill(ctx, r)
		if runs == 0 {
			q.Error = "No run is due within the period."
		} else {
			q.Fields = append(q.Fields, field{Name: confirm, Label: "Fire " + show.Things(runs, "run"), Kind: "check"})
		}
		return result{again: &q}, err
	}
	job, err := d.jobs.Start(ctx, "Backfill "+name, string(r.who), runs, func(ctx context.Context, j *jobs.Job) (string, error) {
		n, err := d.op.Schedules.Backfill(ctx, name, from, to)
		j.Add(int64(n))
		return "Fired " + show.Things(int64(n), "run") + ".", err
	})
	return result{job: job, to: d.scheduleLink(r)}, err
}

func instant(label, text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(text))
	if err != nil {
		return at, invalid(label, "%q, want an instant such as 2031-01-02T15:04:05Z", text)
	}
	return at, nil
}

// The kinds of rules of the form.
const (
	byInterval = "interval"
	byCron     = "cron"
	byRRule    = "rrule"
)

// askPut is the editor. With a name in the address it is filled from that schedule.
func (d *Dashboard) askPut(ctx context.Context, r *request) (question, error) {
	name := r.get("name")
	q := question{
		Title: "New recurring schedule", Button: "Store", Again: "Preview the next runs", Back: d.link("schedules"),
		Text: []string{"This stores 1 recurring schedule. It replaces the one with the same name; with the same rule it continues where that one was."},
	}
	state := recurring.State{Rule: recurring.Rule{Cron: "0 9 * * 1-5"}}
	if name != "" {
		var err error
		if state, err = d.op.Schedules.Get(ctx, name); err != nil {
			return q, err
		}
		q.Title, q.Back = "Edit schedule "+show.Short(64, name), d.scheduleLink(r)
		if !formable(state) || state.Celery {
			return q, invalid("rule", "this form cannot represent it; use the command line")
		}
		q.Text = append(q.Text, "The stored body is not shown here. It stays, unless you enter another.")
	}
	q.Fields = putFields(state)
	return q, nil
}

func putFields(s recurring.State) []field {
	kind, rule := byInterval, everyOf(s)
	switch {
	case s.Rule.Cron != "":
		kind, rule = byCron, s.Rule.Cron
	case s.Rule.RRule != "":
		kind, rule = byRRule, s.Rule.RRule
	}
	number := func(n int64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	until, jitter := "", ""
	if !s.Rule.Until.IsZero() {
		until = s.Rule.Until.Format(time.RFC3339)
	}
	if s.Rule.Jitter > 0 {
		jitter = s.Rule.Jitter.String()
	}
	return []field{
		{Name: "name", Label: "Name", Value: s.Name, Required: true},
		{Name: "topic", Label: "Topic of the runs", Value: s.Topic, Required: true},
		{Name: "kind", Label: "Kind of rule", Kind: "select", Options: []string{byCron, byInterval, byRRule}, Value: kind},
		{Name: "rule", Label: "Rule", Value: rule, Required: true, Hint: "0 9 * * 1-5 for cron, 90s or 3h for an interval, FREQ=WEEKLY;BYDAY=MO for an rrule."},
		{Name: "zone", Label: "Time zone", Value: s.Rule.Zone, Hint: "Of a cron rule, such as Europe/Berlin; empty: UTC."},
		{Name: "jitter", Label: "Jitter", Value: jitter, Hint: "Delays each run by a random time up to this."},
		{Name: "until", Label: "Until", Value: until, Hint: "The latest instant of a run."},
		{Name: "max_runs", Label: "Runs", Kind: "number", Value: number(s.Rule.MaxRuns), Hint: "Ends after so many; empty: never."},
		{Name: "misfire", Label: "Missed runs", Kind: "select", Options: []string{"once", "skip", "all"}, Value: string(s.Rule.Misfire)},
		{Name: "overlap", Label: "While the previous run exists", Kind: "select", Options: []string{"allow", "skip", "queue"}, Value: string(s.Rule.Overlap)},
		{Name: "body", Label: "Body", Kind: "area", Hint: "JSON; empty: none, or the one that is stored."},
	}
}

func (d *Dashboard) doPut(ctx context.Context, r *request, form url.Values) (result, error) {
	s, err := d.scheduleOf(ctx, r, form)
	if err != nil {
		return result{}, err
	}
	if form.Get("again") != "" {
		q, err := d.askPut(ctx, r)
		if err != nil {
			return result{}, err
		}
		instants, err := s.Rule.Next(ctx, time.Now(), nextRuns)
		q.Preview = inZone(instants, s.Rule.Zone)
		return result{again: &q}, err
	}
	err = d.op.Schedules.Put(ctx, s)
	return result{text: "The schedule is stored.", to: d.link("schedule", "name", s.Name)}, err
}

// scheduleOf reads the form of the editor. What the form does not have, such as
// headers, stays as it is stored.
func (d *Dashboard) scheduleOf(ctx context.Context, r *request, form url.Values) (s recurring.Schedule, err error) {
	var rule recurring.Rule
	if name := r.get("name"); name != "" && name == form.Get("name") {
		state, err := d.op.Schedules.Get(ctx, name)
		if err != nil {
			return s, err
		}
		rule = state.Rule
	}
	if rule, err = ruleOf(rule, form); err != nil {
		return s, err
	}
	name, topic, body := form.Get("name"), form.Get("topic"), strings.TrimSpace(form.Get("body"))
	if body == "" {
		s = wakebell.NewTopic[[]byte](topic).Recurring(name, rule, nil)
		if r.get("name") == name {
			err = d.keepBody(ctx, &s)
		}
		return s, err
	}
	if !json.Valid([]byte(body)) {
		return s, invalid("body", "not valid JSON")
	}
	return wakebell.NewTopic[json.RawMessage](topic).Recurring(name, rule, json.RawMessage(body)), nil
}

// keepBody gives a schedule the body that is stored.
func (d *Dashboard) keepBody(ctx context.Context, s *recurring.Schedule) error {
	dump, err := d.op.Schedules.Export(ctx, s.Name)
	if err != nil || len(dump.Wakebell) == 0 {
		return err
	}
	stored, err := recur.ReadOurs(dump.Wakebell)
	if err != nil {
		return fmt.Errorf("read the stored body: %w", err)
	}
	s.Body, s.ContentType = stored.Body, stored.ContentType
	return nil
}

func ruleOf(rule recurring.Rule, form url.Values) (recurring.Rule, error) {
	text := strings.TrimSpace(form.Get("rule"))
	rule.Cron, rule.RRule = "", ""
	rule.Zone = strings.TrimSpace(form.Get("zone"))
	var err error
	switch form.Get("kind") {
	case byCron:
		rule.Cron = text
	case byRRule:
		rule.RRule = text
	default:
		if rule.Every, err = span("rule", text); err != nil {
			return rule, err
		}
	}
	if rule.Jitter, err = span("jitter", form.Get("jitter")); err != nil {
		return rule, err
	}
	rule.Until = time.Time{}
	if until := form.Get("until"); until != "" {
		if rule.Until, err = instant("until", until); err != nil {
			return rule, err
		}
	}
	rule.MaxRuns = 0
	if runs := form.Get("max_runs"); runs != "" {
		if rule.MaxRuns, err = strconv.ParseInt(runs, 10, 64); err != nil {
			return rule, invalid("runs", "%q, want a number", runs)
		}
	}
	rule.Misfire, rule.Overlap = "", ""
	if v := form.Get("misfire"); v != "once" {
		rule.Misfire = recurring.Misfire(v)
	}
	if v := form.Get("overlap"); v != "allow" {
		rule.Overlap = recurring.Overlap(v)
	}
	return rule, nil
}
