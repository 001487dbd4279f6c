package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/dashboard/internal/jobs"
	"github.com/wakebell/wakebell/dashboard/internal/show"
	"github.com/wakebell/wakebell/internal/text"
)

// action is a change that an operator can make. Its page, GET do/NAME, asks with the
// count that the change concerns; the form of that page posts to the same address.
type action struct {
	section string
	// ask returns the question. It reads the present state for the count.
	ask func(ctx context.Context, r *request) (question, error)
	// do makes the change with the values of the form.
	do func(ctx context.Context, r *request, form url.Values) (result, error)
}

// question is the page of an action.
type question struct {
	Title  string
	Text   []string // what happens, with the count
	Fields []field
	Button string
	Danger bool   // it cannot be undone
	Back   string // address of the page that the action is about

	Preview []run  // of a rule of a recurring schedule
	Again   string // label of a second button, which shows the preview

	// Set for the page.
	Action string // address of the form
	Error  string
}

// field is an input of a form.
type field struct {
	Name, Label, Value, Hint string

	Kind     string // "text", "number", "area", "select", "check"
	Options  []string
	Required bool
}

// result is what an action did.
type result struct {
	text string
	to   string // address of the next page
	job  *jobs.Job
	// again shows the question with the values of the form instead.
	again *question
}

func (d *Dashboard) allActions() map[string]action {
	all := map[string]action{}
	for _, some := range []map[string]action{d.topicActions(), d.timerActions(), d.deadActions(), d.jobActions()} {
		for name, a := range some {
			all[name] = a
		}
	}
	if d.op.Queues != nil {
		for name, a := range d.queueActions() {
			all[name] = a
		}
	}
	if d.op.Schedules != nil {
		for name, a := range d.scheduleActions() {
			all[name] = a
		}
	}
	if d.op.Gates != nil {
		for name, a := range d.gateActions() {
			all[name] = a
		}
	}
	return all
}

// ask serves the page of an action.
func (d *Dashboard) ask(r *request) {
	a, ok := d.actions[r.PathValue("action")]
	switch {
	case !ok:
		d.unknown(r)
		return
	case !r.writes():
		d.fail(r, http.StatusForbidden, errReadOnly)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readLimit)
	defer cancel()
	q, err := a.ask(ctx, r)
	if err != nil {
		d.fail(r, statusOf(err), err)
		return
	}
	d.renderQuestion(r, a, q, 0)
}

// renderQuestion shows the page of an action.
func (d *Dashboard) renderQuestion(r *request, a action, q question, status int) {
	q.Action = d.cfg.Path + r.URL.Path
	if r.URL.RawQuery != "" {
		q.Action += "?" + r.URL.Query().Encode()
	}
	d.render(r, page{template: "ask", title: q.Title, section: a.section, status: status, data: q})
}

// maxCaller bounds the name of a principal in the audit, in bytes.
const maxCaller = 256

// change carries out an action.
func (d *Dashboard) change(r *request) {
	a, ok := d.actions[r.PathValue("action")]
	if !ok {
		d.unknown(r)
		return
	}
	if !r.writes() {
		d.fail(r, http.StatusForbidden, errReadOnly)
		return
	}
	r.Body = http.MaxBytesReader(r.w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		d.fail(r, http.StatusBadRequest, fmt.Errorf("the form cannot be read: %w", err))
		return
	}
	if err := d.forgery.Check(r.Request); err != nil {
		d.fail(r, http.StatusForbidden, err)
		return
	}
	ctx, cancel := context.WithTimeout(wakebell.WithCaller(r.Context(), text.Clip(string(r.who), maxCaller)), callLimit)
	defer cancel()
	done, err := a.do(ctx, r, r.PostForm)
	switch {
	case err != nil:
		d.refused(ctx, r, a, err)
	case done.again != nil:
		done.again.keep(r.PostForm)
		d.renderQuestion(r, a, *done.again, 0)
	default:
		d.done(r, done)
	}
}

// refused shows the form again, with what was entered and the error.
func (d *Dashboard) refused(ctx context.Context, r *request, a action, err error) {
	d.log.WarnContext(ctx, "dashboard: change failed", "action", r.PathValue("action"), "principal", string(r.who), "err", err)
	q, cannotAsk := a.ask(ctx, r)
	if cannotAsk != nil {
		d.fail(r, statusOf(err), err)
		return
	}
	q.keep(r.PostForm)
	q.Error = show.Text(err.Error())
	d.renderQuestion(r, a, q, statusOf(err))
}

// keep puts what was entered into the fields.
func (q *question) keep(form url.Values) {
	for i := range q.Fields {
		if f := &q.Fields[i]; form.Has(f.Name) || f.Kind == "check" {
			f.Value = form.Get(f.Name)
		}
	}
}

// jobShort is for how long a change waits for its job, so that a short one needs no
// page of its own.
const jobShort = 1500 * time.Millisecond

// done goes to the next page with the result.
func (d *Dashboard) done(r *request, done result) {
	d.topics.Forget()
	d.totals.Forget()
	d.queues.Forget()
	d.names.Forget()
	d.log.InfoContext(r.Context(), "dashboard: change", "action", r.PathValue("action"), "principal", string(r.who), "query", r.URL.RawQuery)
	if done.job != nil {
		select {
		case <-done.job.Ended():
			s := done.job.Status()
			if done.text = s.Summary; s.Err != nil {
				done.text, done.to = "", d.link("job", "id", fmt.Sprint(done.job.ID))
			}
		case <-time.After(jobShort):
			done.text, done.to = "", d.link("job", "id", fmt.Sprint(done.job.ID))
		case <-r.Context().Done():
			return
		}
	}
	if done.text != "" {
		d.setFlash(r, done.text)
	}
	r.w.Header().Set("Location", done.to)
	r.w.WriteHeader(http.StatusSeeOther)
}

// invalid returns the error of a value of a form.
func invalid(label, format string, args ...any) error {
	return fmt.Errorf("%w: %s: "+format, append([]any{wakebell.ErrInvalid, label}, args...)...)
}

func (d *Dashboard) jobActions() map[string]action {
	back := func(r *request) string { return d.link("job", "id", r.get("id")) }
	return map[string]action{
		"stop-job": {
			section: "jobs",
			ask: func(_ context.Context, r *request) (question, error) {
				j, err := d.findJob(r)
				if err != nil {
					return question{}, err
				}
				s := j.Status()
				return question{
					Title: "Stop a job", Button: "Stop", Back: back(r),
					Text: []string{s.Title, "It has done " + show.Things(s.Done, "item") + ", which it does not undo."},
				}, nil
			},
			do: func(_ context.Context, r *request, _ url.Values) (result, error) {
				j, err := d.findJob(r)
				if err != nil {
					return result{}, err
				}
				j.Stop()
				return result{text: "The job stops.", to: back(r)}, nil
			},
		},
	}
}
