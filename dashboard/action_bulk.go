package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/dashboard/internal/jobs"
	"github.com/wakebell/wakebell/dashboard/internal/show"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	// maxBulk bounds the timers of one bulk change, and maxBulkScan those that are
	// looked at for them.
	maxBulk     = 10_000
	maxBulkScan = 50_000
	bulkBatch   = 500 // ids of one call

	// maxBulkRead bounds the timers that are read for a text in their contents.
	maxBulkRead = 2000
)

// selection are the timers that the filter of an address selects.
type selection struct {
	ids  []string
	more bool // there may be more
	all  bool // no timer that was looked at is left out: they are all of the topic, as far as that was read
}

// matching returns the timers that the filter of the address selects.
func (d *Dashboard) matching(ctx context.Context, r *request) (s selection, err error) {
	topic, err := r.required("topic")
	if err != nil {
		return s, err
	}
	q, most := timerQuery{topic: topic, prefix: r.get("prefix"), text: r.get("text")}, maxBulkScan
	if q.text != "" {
		most = maxBulkRead
	}
	if err := d.searchable(q.text); err != nil {
		return s, err
	}
	filter := wakebell.Filter{Running: r.get("running") != ""}
	if within := windows[r.get("within")]; within > 0 {
		filter.DueBefore = d.redisNow(ctx, topic, d.clock(ctx, topic)).Add(within)
	}
	seen := 0
	s.all = !filter.Running && filter.DueBefore.IsZero()
	for info, err := range d.op.Timers.List(ctx, topic, filter, wakebelltype.Page{Limit: most}) {
		if err != nil {
			return s, err
		}
		seen++
		matches, err := d.matches(ctx, q, info.ID)
		switch {
		case err != nil:
			return s, err
		case !matches:
			s.all = false
		case len(s.ids) == maxBulk:
			s.more = true
			return s, nil
		default:
			s.ids = append(s.ids, info.ID)
		}
	}
	s.more, s.all = seen == most, s.all && len(s.ids) > 0
	return s, nil
}

func (d *Dashboard) bulkBack(r *request) string {
	return d.link("timers", "topic", r.get("topic"), "prefix", r.get("prefix"), "text", r.get("text"), "running", r.get("running"), "within", r.get("within"))
}

func (d *Dashboard) askBulk(verb, effect string, danger bool) func(context.Context, *request) (question, error) {
	return func(ctx context.Context, r *request) (question, error) {
		s, err := d.matching(ctx, r)
		count := show.Things(int64(len(s.ids)), "timer")
		if s.more {
			count = "The first " + count + "; repeat it for the rest"
		}
		q := question{
			Title: verb + ": timers of " + show.Short(64, r.get("topic")), Button: verb + " " + show.Things(int64(len(s.ids)), "timer"),
			Danger: danger, Back: d.bulkBack(r), Text: []string{count + ".", effect},
		}
		if prefix := r.get("prefix"); prefix != "" {
			q.Text = append(q.Text, "Their ids begin with "+show.Short(64, prefix)+".")
		}
		if text := r.get("text"); text != "" {
			q.Text = append(q.Text, "Their headers or bodies contain "+show.Short(64, text)+".")
		}
		if verb == "Reschedule" {
			q.Fields = []field{{Name: "when", Label: whenLabel, Hint: whenHint, Required: true}}
		}
		if danger && s.all {
			q.Text = append(q.Text, "The filter leaves out no timer: these are all of the topic.")
			q.Fields = append(q.Fields, confirmField)
		}
		return q, err
	}
}

// manyFunc changes timers and returns how many it changed.
type manyFunc func(ctx context.Context, topic string, ids []string, when wakebell.ScheduleOption) (int64, error)

func (d *Dashboard) doBulk(change manyFunc, verb string, danger bool, operation wakebelltype.AuditOperation) func(context.Context, *request, url.Values) (result, error) {
	return func(ctx context.Context, r *request, form url.Values) (result, error) {
		var when wakebell.ScheduleOption
		if form.Has("when") {
			var err error
			if when, err = parseWhen(form); err != nil {
				return result{}, err
			}
		}
		s, err := d.matching(ctx, r)
		topic := r.get("topic")
		if err == nil && danger && s.all {
			err = confirmed(form, topic)
		}
		if err != nil {
			return result{}, err
		}
		title := fmt.Sprintf("%s: timers of %s", verb, topic)
		job, err := d.jobs.Start(ctx, title, string(r.who), int64(len(s.ids)), func(ctx context.Context, j *jobs.Job) (string, error) {
			changed, err := inParts(ctx, j, topic, s.ids, when, change)
			unrecorded := d.record(ctx, r, operation, topic, changed, selected(r.get)+dueText(form), err)
			if err != nil {
				return verb + " " + show.Things(changed, "timer") + " before the error." + unrecorded, err
			}
			return verb + " " + show.Things(changed, "timer") + "." + unrecorded, nil
		})
		return result{job: job, to: d.bulkBack(r)}, err
	}
}

func inParts(ctx context.Context, j *jobs.Job, topic string, ids []string, when wakebell.ScheduleOption, change manyFunc) (changed int64, err error) {
	for part := range slices.Chunk(ids, bulkBatch) {
		n, err := change(ctx, topic, part, when)
		changed += n
		j.Add(int64(len(part)))
		if err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// selected describes the filter of the address.
func selected(get func(name string) string) string {
	words := []string{"timers"}
	if get("running") != "" {
		words = append(words, "that run")
	}
	if within := get("within"); windows[within] > 0 {
		words = append(words, "due within "+within)
	}
	if prefix := get("prefix"); prefix != "" {
		words = append(words, fmt.Sprintf("whose ids begin with %q", prefix))
	}
	if text := get("text"); text != "" {
		words = append(words, fmt.Sprintf("with %q in a header or the body", text))
	}
	if len(words) == 1 {
		words = append(words, "in the order of their instants")
	}
	return strings.Join(words, " ")
}

// dueText describes the field "when" of a form that has it.
func dueText(form url.Values) string {
	when := strings.TrimSpace(form.Get("when"))
	if when == "" {
		return ""
	}
	return ", to: " + when
}

// recordLimit bounds the entry of a change in the audit, which is written after the
// job was stopped too.
const recordLimit = 5 * time.Second

// record writes the entry of what an action changed by calls that are not recorded by
// themselves. If it cannot, such as over a node by a token that may schedule and not operate,
// it returns a sentence that says so, to be shown behind the result.
func (d *Dashboard) record(ctx context.Context, r *request, operation wakebelltype.AuditOperation, name string, changed int64, detail string, fault error) (unrecorded string) {
	if changed == 0 {
		return ""
	}
	change := wakebelltype.Change{Operation: operation, Name: name, Count: changed, Detail: detail}
	if fault != nil {
		change.Error = fault.Error()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordLimit)
	defer cancel()
	if err := d.op.Timers.RecordChange(ctx, change); err != nil {
		d.log.WarnContext(ctx, "dashboard: change not recorded", "operation", string(operation), "name", name, "principal", string(r.who), "err", err)
		return " The audit has no entry of it: " + show.Text(err.Error())
	}
	return ""
}

func (d *Dashboard) cancelMany(ctx context.Context, topic string, ids []string, _ wakebell.ScheduleOption) (n int64, err error) {
	found, err := d.op.Timers.Cancel(ctx, topic, ids...)
	for _, presence := range found {
		if presence != wakebelltype.PresenceAbsent {
			n++
		}
	}
	return n, err
}

func (d *Dashboard) runMany(ctx context.Context, topic string, ids []string, _ wakebell.ScheduleOption) (n int64, err error) {
	running := int64(0) // not changed
	n, err = each(ids, func(id string) error {
		found, err := d.op.Timers.RunNow(ctx, topic, id)
		if found == wakebelltype.PresenceRunning {
			running++
		}
		return err
	})
	return n - running, err
}

func (d *Dashboard) rescheduleMany(ctx context.Context, topic string, ids []string, when wakebell.ScheduleOption) (n int64, err error) {
	if when == nil {
		return 0, invalid(whenLabel, "empty")
	}
	return each(ids, func(id string) error {
		_, err := d.op.Timers.Reschedule(ctx, topic, id, when)
		return err
	})
}

// each counts the calls that succeed. A timer that is gone is skipped.
func each(ids []string, call func(id string) error) (n int64, err error) {
	for _, id := range ids {
		switch err := call(id); {
		case errors.Is(err, wakebell.ErrNotFound):
		case err != nil:
			return n, err
		default:
			n++
		}
	}
	return n, nil
}
