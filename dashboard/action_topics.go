package dashboard

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/wakebell/wakebell/dashboard/internal/jobs"
	"github.com/wakebell/wakebell/dashboard/internal/show"
	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/wakebelltype"
)

func (d *Dashboard) topicActions() map[string]action {
	return map[string]action{
		"pause":      {"topics", d.askPause, d.doPause},
		"resume":     {"topics", d.askResume, d.doResume},
		"retune":     {"topics", d.askRetune, d.doRetune},
		"cancel-all": {"topics", d.askCancelAll, d.doCancelAll},
		"forget":     {"topics", d.askForget, d.doForget},
	}
}

// aboutTopic returns the name of the topic of an action and its overview.
func (d *Dashboard) aboutTopic(ctx context.Context, r *request) (string, wakebelltype.Overview, error) {
	name, err := r.required("topic")
	if err != nil {
		return "", wakebelltype.Overview{}, err
	}
	o, err := d.readTopic(ctx, name)
	return name, o, err
}

func (d *Dashboard) topicLink(r *request) string { return d.link("topic", "name", r.get("topic")) }

// timersOf writes the number of timers of a topic.
func timersOf(s wakebelltype.Stats) string {
	text := show.Things(s.Total, "timer")
	if s.Leased > 0 {
		text += ", of which " + show.Count(s.Leased) + " are running"
	}
	return text
}

func (d *Dashboard) askPause(ctx context.Context, r *request) (question, error) {
	name, o, err := d.aboutTopic(ctx, r)
	return question{
		Title: "Pause " + show.Short(64, name), Button: "Pause", Back: d.topicLink(r),
		Text: []string{
			"No node claims timers of this topic until the pause ends or you resume it. It has " + timersOf(o.Stats) + ".",
			"Running handlers continue. Timers can still be scheduled, and wait.",
		},
		Fields: []field{
			{Name: "reason", Label: "Reason", Value: o.Control.Reason, Hint: "Shown to everyone who looks at the topic; at most 1,024 bytes."},
			{Name: "for", Label: "Ends after", Hint: "Such as 2h or 30m, by Redis's clock. Empty: it lasts until the topic is resumed."},
		},
	}, err
}

func (d *Dashboard) doPause(ctx context.Context, r *request, form url.Values) (result, error) {
	p := wakebelltype.Pause{By: string(r.who), Reason: form.Get("reason")}
	if text := strings.TrimSpace(form.Get("for")); text != "" {
		var err error
		if p.For, err = time.ParseDuration(text); err != nil || p.For <= 0 {
			return result{}, invalid("Ends after", "%q, want a duration such as 2h", text)
		}
	}
	_, err := d.op.Timers.PauseUntil(ctx, r.get("topic"), p)
	return result{text: "The topic is paused on all nodes.", to: d.topicLink(r)}, err
}

func (d *Dashboard) askResume(ctx context.Context, r *request) (question, error) {
	name, o, err := d.aboutTopic(ctx, r)
	return question{
		Title: "Resume " + show.Short(64, name), Button: "Resume", Back: d.topicLink(r),
		Text: []string{fmt.Sprintf("Nodes claim timers of this topic again. It has %s; %s due and will be delivered at once.", timersOf(o.Stats), are(o.Stats.Due))},
	}, err
}

func are(n int64) string {
	if n == 1 {
		return "1 is"
	}
	return show.Count(n) + " are"
}

func (d *Dashboard) doResume(ctx context.Context, r *request, _ url.Values) (result, error) {
	_, err := d.op.Timers.Resume(ctx, r.get("topic"))
	return result{text: "The topic is resumed on all nodes.", to: d.topicLink(r)}, err
}

func (d *Dashboard) askRetune(ctx context.Context, r *request) (question, error) {
	name, o, err := d.aboutTopic(ctx, r)
	q := question{
		Title: "Retune " + show.Short(64, name), Button: "Apply to all nodes", Back: d.topicLink(r),
		Text: []string{
			"These settings replace the options of every node that handles the topic. An empty field leaves the option of the node.",
			"The topic has " + timersOf(o.Stats) + "; changes apply to running handlers too.",
		},
	}
	options := d.optionsOf(name, o)
	for _, t := range tuning.All {
		f := field{Name: t.Name, Label: t.Flag, Hint: fmt.Sprintf("%s; %s to %s", t.Usage, t.Text(t.Low), t.Text(t.High))}
		if v := t.Get(&o.Control.Settings); v != 0 {
			f.Value = t.Text(v)
		}
		if own := ownValues(t, options); own != "" {
			f.Hint += ". Option of the nodes: " + own
		}
		q.Fields = append(q.Fields, f)
	}
	return q, err
}

// optionsOf returns the options of the nodes of a topic that are known, by node.
func (d *Dashboard) optionsOf(topic string, o wakebelltype.Overview) map[string]wakebelltype.Settings {
	options := map[string]wakebelltype.Settings{}
	for _, r := range o.Reports {
		options[r.Node] = r.State.Options
	}
	for _, n := range d.feeds.nodes([]string{topic}) {
		for _, t := range n.Topics {
			if n.Known && t.Silent.IsZero() {
				options[n.Name] = t.State.Options
			}
		}
	}
	return options
}

// ownValues writes the values that nodes have of a setting, each once; empty: no node is known.
func ownValues(t *tuning.Setting, options map[string]wakebelltype.Settings) string {
	var values []string
	for _, set := range options {
		value := "off"
		if v := t.Get(&set); v != 0 {
			value = t.Text(v)
		}
		values = append(values, value)
	}
	slices.Sort(values)
	return strings.Join(slices.Compact(values), ", ")
}

func (d *Dashboard) doRetune(ctx context.Context, r *request, form url.Values) (result, error) {
	var set wakebelltype.Settings
	for _, t := range tuning.All {
		text := form.Get(t.Name)
		if text == "" {
			continue
		}
		if err := t.Read(&set, text); err != nil {
			return result{}, invalid(t.Flag, "%q, want %s to %s", text, t.Text(t.Low), t.Text(t.High))
		}
		if t.Get(&set) == 0 {
			return result{}, invalid(t.Flag, "0, want %s to %s; leave it empty for the option of each node", t.Text(t.Low), t.Text(t.High))
		}
	}
	_, err := d.op.Timers.Retune(ctx, r.get("topic"), set)
	return result{text: "The settings apply to all nodes.", to: d.topicLink(r)}, err
}

func (d *Dashboard) askCancelAll(ctx context.Context, r *request) (question, error) {
	name, o, err := d.aboutTopic(ctx, r)
	return question{
		Title: "Cancel all timers of " + show.Short(64, name), Button: "Cancel all", Danger: true, Back: d.topicLink(r),
		Text:   []string{"This removes " + timersOf(o.Stats) + ", for good. Dead letters stay."},
		Fields: []field{confirmField},
	}, err
}

// confirmField is the field of what removes all timers of a topic.
var confirmField = field{Name: "confirm", Label: "Name of the topic", Hint: "Type the name to confirm.", Required: true}

// confirmed checks that the name was typed.
func confirmed(form url.Values, name string) error {
	if form.Get("confirm") != name {
		return invalid("name", "want the name that is shown above, to confirm")
	}
	return nil
}

func (d *Dashboard) doCancelAll(ctx context.Context, r *request, form url.Values) (result, error) {
	name, o, err := d.aboutTopic(ctx, r)
	if err == nil {
		err = confirmed(form, name)
	}
	if err != nil {
		return result{}, err
	}
	job, err := d.jobs.Start(ctx, "Cancel all timers of "+name, string(r.who), o.Stats.Total, func(ctx context.Context, j *jobs.Job) (string, error) {
		n, err := d.op.Timers.CancelAll(ctx, name)
		j.Add(n)
		return "Cancelled " + show.Things(n, "timer") + ".", err
	})
	return result{job: job, to: d.topicLink(r)}, err
}

func (d *Dashboard) askForget(ctx context.Context, r *request) (question, error) {
	name, o, err := d.aboutTopic(ctx, r)
	return question{
		Title: "Forget " + show.Short(64, name), Button: "Forget the topic", Danger: true, Back: d.topicLink(r),
		Text: []string{
			fmt.Sprintf("This removes everything that Redis has of this topic, for good: %s, %s, and its settings.",
				timersOf(o.Stats), show.Things(o.Stats.Dead, "dead letter")),
			"Use it for topics that are no longer in use. A node that handles the topic lists it again.",
		},
		Fields: []field{confirmField},
	}, err
}

func (d *Dashboard) doForget(ctx context.Context, r *request, form url.Values) (result, error) {
	name, err := r.required("topic")
	if err == nil {
		err = confirmed(form, name)
	}
	if err == nil {
		err = d.op.Timers.Forget(ctx, name)
	}
	return result{text: "The topic is forgotten.", to: d.link("topics")}, err
}
