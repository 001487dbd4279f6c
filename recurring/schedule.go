package recurring

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/wakebell/wakebell/internal/argument"
	schedulestore "github.com/wakebell/wakebell/redisops/recurring"
)

// Schedule is a recurring schedule to be stored by Schedules.Put.
// wakebell.Topic.Recurring and Celery make one.
type Schedule struct {
	// Name identifies the schedule: 1 to 400 bytes, prefix included. It does not
	// begin with a colon.
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

	// Err is the error of the function that made the schedule. Validate and Put
	// return it.
	Err error

	owner string // the service whose configuration has it; empty: none
}

// CeleryTask has the arguments of a Celery task and its options, as JSON; nil
// for none. Args is an array, Kwargs and Options are objects.
type CeleryTask struct {
	Args, Kwargs, Options json.RawMessage
}

// Celery makes a schedule whose runs are messages for Celery workers, on the
// Redis that stores the schedule. The options are those of apply_async: queue,
// priority, expires, eta, countdown and routing_key; nil for none.
func Celery(name, task string, rule Rule, args []any, kwargs, options map[string]any) Schedule {
	s := Schedule{Name: name, Topic: task, Rule: rule}
	encode := func(field string, v any, none bool) json.RawMessage {
		if none {
			return nil
		}
		raw, err := json.Marshal(v)
		if err != nil {
			s.Err = errors.Join(s.Err, argument.Invalid(field, "%v", err))
		}
		return raw
	}
	s.Celery = &CeleryTask{
		Args:    encode("args", args, args == nil),
		Kwargs:  encode("kwargs", kwargs, kwargs == nil),
		Options: encode("options", options, options == nil),
	}
	return s
}

// compile reports what is wrong with the rule of a valid schedule: a text that cannot be
// read, an unknown zone, no instant. It stands for a schedule that is stored at an instant
// of no importance, so that one whose Until is over stays valid.
func (s Schedule) compile(in *time.Location) error {
	_, err := s.entry("", time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), nil, in)
	return err
}

// Validate reports all that is wrong with the schedule and can be found without
// Redis, except for the syntax of the rule. Errors wrap wakebell.ErrInvalid.
func (s Schedule) Validate() error {
	errs := []error{s.Err}
	if s.Name == "" || len(s.Name) > schedulestore.MaxName || strings.HasPrefix(s.Name, ":") {
		errs = append(errs, argument.Invalid("name", "%d bytes, want 1 to %d that do not begin with a colon", len(s.Name), schedulestore.MaxName))
	}
	if s.Topic == "" {
		errs = append(errs, argument.Invalid("topic", "empty"))
	}
	return errors.Join(append(errs, s.Rule.validate())...)
}
