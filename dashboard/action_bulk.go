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
)

// matching returns the ids of the timers that the filter of the address selects, and
// whether there may be more.
func (d *Dashboard) matching(ctx context.Context, r *request) (ids []string, more bool, err error) {
	topic, err := r.required("topic")
	if err != nil {
		return nil, false, err
	}
	prefix := r.get("prefix")
	filter := wakebell.Filter{Running: r.get("running") != ""}
	if within := windows[r.get("within")]; within > 0 {
		filter.DueBefore = time.Now().Add(within)
	}
	seen := 0
	for info, err := range d.op.Timers.List(ctx, topic, filter, wakebelltype.Page{Limit: maxBulkScan}) {
		if err != nil {
			return nil, false, err
		}
		if seen++; strings.HasPrefix(info.ID, prefix) {
			if len(ids) == maxBulk {
				return ids, true, nil
			}
			ids = append(ids, info.ID)
		}
	}
	return ids, seen == maxBulkScan, nil
}

func (d *Dashboard) bulkBack(r *request) string {
	return d.link("timers", "topic", r.get("topic"), "prefix", r.get("prefix"), "running", r.get("running"), "within", r.get("within"))
}

func (d *Dashboard) askBulk(verb, effect string, danger bool) func(context.Context, *request) (question, error) {
	return func(ctx context.Context, r *request) (question, error) {
		ids, more, err := d.matching(ctx, r)
		count := show.Things(int64(len(ids)), "timer")
		if more {
			count = "The first " + count + "; repeat it for the rest"
		}
		q := question{
			Title: verb + ": timers of " + show.Short(64, r.get("topic")), Button: verb + " " + show.Things(int64(len(ids)), "timer"),
			Danger: danger, Back: d.bulkBack(r), Text: []string{count + ".", effect},
		}
		if prefix := r.get("prefix"); prefix != "" {
			q.Text = append(q.Text, "Their ids begin with "+show.Short(64, prefix)+".")
		}
		if verb == "Reschedule" {
			q.Fields = []field{{Name: "when", Label: whenLabel, Hint: whenHint, Required: true}}
		}
		return q, err
	}
}

// manyFunc changes timers and returns how many it changed.
type manyFunc func(ctx context.Context, topic string, ids []string, when wakebell.ScheduleOption) (int64, error)

func (d *Dashboard) doBulk(change manyFunc, verb string) func(context.Context, *request, url.Values) (result, error) {
	return func(ctx context.Context, r *request, form url.Values) (result, error) {
		var when wakebell.ScheduleOption
		if form.Has("when") {
			var err error
			if when, err = parseWhen(form); err != nil {
				return result{}, err
			}
		}
		ids, _, err := d.matching(ctx, r)
		if err != nil {
			return result{}, err
		}
		topic := r.get("topic")
		title := fmt.Sprintf("%s: timers of %s", verb, topic)
		job, err := d.jobs.Start(ctx, title, string(r.who), int64(len(ids)), func(ctx context.Context, j *jobs.Job) (string, error) {
			changed := int64(0)
			for part := range slices.Chunk(ids, bulkBatch) {
				n, err := change(ctx, topic, part, when)
				changed += n
				j.Add(int64(len(part)))
				if err != nil {
					return verb + " " + show.Things(changed, "timer") + " before the error.", err
				}
			}
			return verb + " " + show.Things(changed, "timer") + ".", nil
		})
		return result{job: job, to: d.bulkBack(r)}, err
	}
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
	return each(ids, func(id string) error {
		_, err := d.op.Timers.RunNow(ctx, topic, id)
		return err
	})
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
