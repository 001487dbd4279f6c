package recurring

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/redisops"
)

// Schedule is a recurring schedule to be stored by Schedules.Put. Topic.Recurring
// and Celery make it.
type Schedule struct {
	// Name identifies the schedule: 1 to 400 bytes that do not begin with a colon.
	Name string

	// Topic is the topic of the runs, without the prefix; with Celery it is the
	// name of the task. Required.
	Topic string

	// Rule says when the schedule fires.
	Rule Rule

	// Body and ContentType are the encoded body of each run and its media type,
	// empty for none. They are not used with Celery.
	Body        []byte
	ContentType string

	// Celery makes the runs messages for Celery workers; nil: they are timers.
	Celery *CeleryTask

	// Err is the error of the function that made the schedule. Put returns it.
	Err error

	owner string // the service whose configuration contains it; empty: none
}

// CeleryTask is what a Celery message has beside the name of its task: JSON, or nil
// for none. Args is an array, Kwargs and Options are objects.
type CeleryTask struct {
	Args, Kwargs, Options json.RawMessage
}

// Celery makes a recurring schedule whose runs are messages for Celery
// workers, on the Redis that keeps the schedule. Options are those of
// apply_async: queue, priority, expires, countdown, routing_key; nil for none.
func Celery(name, task string, when Rule, args []any, kwargs, options map[string]any) Schedule {
	r := Schedule{Name: name, Topic: task, Rule: when, Celery: &CeleryTask{}}
	encode := func(field string, v any, none bool) json.RawMessage {
		if none {
			return nil
		}
		raw, err := json.Marshal(v)
		if err != nil {
			r.Err = errors.Join(r.Err, argument.Invalid(field, "%v", err))
		}
		return raw
	}
	r.Celery.Args = encode("args", args, args == nil)
	r.Celery.Kwargs = encode("kwargs", kwargs, kwargs == nil)
	r.Celery.Options = encode("options", options, options == nil)
	return r
}

// Validate reports all that is wrong with a schedule, as far as that is known
// without Redis. Errors wrap ErrInvalid.
func (r Schedule) Validate() error {
	w, errs := r.Rule, []error{r.Err}
	if r.Name == "" || len(r.Name) > redisops.MaxScheduleName || strings.HasPrefix(r.Name, ":") {
		errs = append(errs, argument.Invalid("name", "%d bytes, want 1 to %d that do not begin with a colon", len(r.Name), redisops.MaxScheduleName))
	}
	if r.Topic == "" {
		errs = append(errs, argument.Invalid("topic", "empty"))
	}
	kinds := 0
	for _, set := range []bool{w.Every != 0, w.Cron != "", w.Crontab != nil, w.RRule != ""} {
		if set {
			kinds++
		}
	}
	if kinds != 1 {
		errs = append(errs, argument.Invalid("Recurrence", "want one of Every, Cron, Crontab and RRule"))
	}
	if w.Relative && w.Every == 0 {
		errs = append(errs, argument.Invalid("Relative", "it is for Every"))
	}
	errs = append(errs, argument.Within("Jitter", w.Jitter, 0, 24*time.Hour))
	if w.MaxRuns < 0 {
		errs = append(errs, argument.Invalid("MaxRuns", "negative"))
	}
	if w.MisfireLimit < 0 || w.MisfireLimit > maxMisfires {
		errs = append(errs, argument.Invalid("MisfireLimit", "%d, want 0 to %d", w.MisfireLimit, maxMisfires))
	}
	if w.Misfire != MisfireOnce && w.Misfire != MisfireSkip && w.Misfire != MisfireAll {
		errs = append(errs, argument.Invalid("Misfire", "%s is unknown", argument.Clip(string(w.Misfire))))
	}
	if w.Overlap != OverlapAllow && w.Overlap != OverlapSkip && w.Overlap != OverlapQueue {
		errs = append(errs, argument.Invalid("Overlap", "%s is unknown", argument.Clip(string(w.Overlap))))
	}
	if !w.Until.IsZero() && w.Until.Before(w.Start) {
		errs = append(errs, argument.Invalid("Until", "before Start"))
	}
	for key, value := range w.Headers {
		if err := envelope.CheckHeader(key, value); err != nil {
			errs = append(errs, argument.Invalid("Headers", "%v", err))
		}
	}
	return errors.Join(errs...)
}

const maxMisfires = 10_000
