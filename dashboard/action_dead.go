package dashboard

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"github.com/wakebell/wakebell/dashboard/internal/jobs"
	"github.com/wakebell/wakebell/dashboard/internal/show"
	"github.com/wakebell/wakebell/wakebelltype"
)

// maxDeadCount bounds the dead letters that a question counts.
const maxDeadCount = 5000

func (d *Dashboard) deadActions() map[string]action {
	return map[string]action{
		"redrive":     {"dead", d.askRedrive, d.doRedrive},
		"delete-dead": {"dead", d.askDeleteDead, d.doDeleteDead},
	}
}

func (d *Dashboard) deadBack(r *request) string {
	return d.link("dead", "topic", r.get("topic"), "reason", r.get("reason"), "prefix", r.get("prefix"), "older", r.get("older"), "newer", r.get("newer"))
}

// selected counts the dead letters that the filter of the address selects.
func (d *Dashboard) selected(ctx context.Context, r *request) (filter wakebelltype.DeadFilter, n int64, text string, err error) {
	topic, err := r.required("topic")
	if err != nil {
		return filter, 0, "", err
	}
	if filter, err = deadFilter(r); err != nil {
		return filter, 0, "", err
	}
	if filter == (wakebelltype.DeadFilter{}) {
		o, err := d.readTopic(ctx, topic)
		return filter, o.Stats.Dead, "All " + show.Things(o.Stats.Dead, "dead letter") + " of the topic.", err
	}
	for _, err := range d.op.Timers.DeadLetters(ctx, topic, filter, wakebelltype.Page{Limit: maxDeadCount}) {
		if err != nil {
			return filter, n, "", err
		}
		n++
	}
	text = show.Things(n, "dead letter") + " that the filter selects."
	if n == maxDeadCount {
		text = "At least " + text
		n = 0 // not known
	}
	return filter, n, text, nil
}

func (d *Dashboard) askRedrive(ctx context.Context, r *request) (question, error) {
	_, _, text, err := d.selected(ctx, r)
	return question{
		Title: "Redrive dead letters of " + show.Short(64, r.get("topic")), Button: "Redrive", Back: d.deadBack(r),
		Text: []string{text, "They become timers again, the oldest first, and begin at attempt 1."},
		Fields: []field{
			{Name: "rate", Label: "Timers per second", Kind: "number", Value: "100", Hint: "1 to 10,000."},
			{Name: "in", Label: "Due in", Hint: "A duration such as 90s or 3h; empty: at once."},
			{Name: "overwrite", Label: "Replace live timers of the same id", Kind: "check"},
		},
	}, err
}

func (d *Dashboard) doRedrive(ctx context.Context, r *request, form url.Values) (result, error) {
	filter, n, _, err := d.selected(ctx, r)
	if err != nil {
		return result{}, err
	}
	o := wakebelltype.RedriveOptions{Filter: filter, Overwrite: form.Get("overwrite") != ""}
	if o.In, err = span("due in", form.Get("in")); err != nil {
		return result{}, err
	}
	if o.Rate, err = strconv.Atoi(form.Get("rate")); err != nil || o.Rate < 1 || o.Rate > 10_000 {
		return result{}, invalid("timers per second", "want 1 to 10,000")
	}
	topic := r.get("topic")
	job, err := d.jobs.Start(ctx, "Redrive dead letters of "+topic, string(r.who), n, func(ctx context.Context, j *jobs.Job) (string, error) {
		o.Each = func(wakebelltype.RedrivenLetter) { j.Add(1) }
		done, err := d.op.Timers.Redrive(ctx, topic, o)
		text := fmt.Sprintf("Redrove %s.", show.Things(done.Redriven+done.Overwritten, "dead letter"))
		if done.SkippedLive > 0 {
			text += fmt.Sprintf(" %s skipped, because a timer of the same id exists.", show.Count(done.SkippedLive))
		}
		if done.SkippedBroken > 0 {
			text += fmt.Sprintf(" %s skipped, because they have no id or no payload.", show.Count(done.SkippedBroken))
		}
		return text, err
	})
	return result{job: job, to: d.link("dead", "topic", topic)}, err
}

func (d *Dashboard) askDeleteDead(ctx context.Context, r *request) (question, error) {
	_, _, text, err := d.selected(ctx, r)
	return question{
		Title: "Delete dead letters of " + show.Short(64, r.get("topic")), Button: "Delete", Danger: true, Back: d.deadBack(r),
		Text:   []string{text, "This deletes them, for good. Export them first if you may need them."},
		Fields: []field{{Name: "confirm", Label: "Name of the topic", Hint: "Type the name to confirm.", Required: true}},
	}, err
}

func (d *Dashboard) doDeleteDead(ctx context.Context, r *request, form url.Values) (result, error) {
	filter, n, _, err := d.selected(ctx, r)
	topic := r.get("topic")
	if err == nil {
		err = confirmed(form, topic)
	}
	if err != nil {
		return result{}, err
	}
	job, err := d.jobs.Start(ctx, "Delete dead letters of "+topic, string(r.who), n, func(ctx context.Context, j *jobs.Job) (string, error) {
		n, err := d.op.Timers.DeleteDead(ctx, topic, filter)
		j.Add(n)
		return "Deleted " + show.Things(n, "dead letter") + ".", err
	})
	return result{job: job, to: d.link("dead", "topic", topic)}, err
}
