package recurring

import (
	"errors"
	"fmt"
	"time"

	"github.com/wakebell/wakebell/internal/argument"
)

// SchedulerConfig has a System fire recurring schedules. Any number of nodes may: each run
// is fired once, by one of them. The zero value works.
type SchedulerConfig struct {
	// Schedules are put at Start. Those that an earlier Start of the same Owner
	// and Config.Prefix has put and that are not among them any more are deleted,
	// each with a line in the log; nil leaves them alone.
	Schedules []Schedule

	// Owner names the service whose Schedules these are, over its restarts and on
	// all of its nodes: 1 to 128 bytes, required with Schedules. Services with
	// different ones leave each other's alone.
	Owner string

	// Celery makes Celery messages of the runs of entries that Python processes
	// have saved, on this Redis; default: timers on the topic that is named as
	// the task, with the body {"args": …, "kwargs": …}.
	Celery bool

	// Zone is that of crontabs and relative intervals without one of their own:
	// the time zone of the Celery app. Default UTC.
	Zone *time.Location

	// TakeLock takes RedBeat's lock for all nodes of ours together, so that a
	// Python beat waits. Without it, and always while a Python beat holds the
	// lock, the beat whose lock it is fires.
	TakeLock bool

	// MaxInterval is the beat_max_loop_interval of the Python beats, default
	// 300 s, at most a day. One that has not renewed its lock for 30 s more while
	// schedules are overdue counts as dead.
	MaxInterval time.Duration

	// OnFire is called for each run that this node has fired. It must not block:
	// nothing is fired meanwhile. A panic is logged.
	OnFire func(Run)
}

// Validate reports all that is wrong with the configuration; nil is valid. Errors
// wrap ErrInvalid.
func (b *SchedulerConfig) Validate() error {
	if b == nil {
		return nil
	}
	errs := []error{argument.Within("Scheduler.MaxInterval", b.MaxInterval, 0, 24*time.Hour)}
	if b.Schedules != nil {
		if err := checkOwner(b.Owner); err != nil {
			errs = append(errs, fmt.Errorf("Scheduler: %w", err))
		}
	}
	seen := map[string]bool{}
	for i, r := range b.Schedules {
		err := r.Validate()
		if seen[r.Name] {
			err = errors.Join(err, argument.Invalid("name", "%s is given twice", argument.Clip(r.Name)))
		}
		if seen[r.Name] = true; err != nil {
			errs = append(errs, fmt.Errorf("Scheduler.Schedules[%d] (%s): %w", i, argument.Clip(r.Name), err))
		}
	}
	return errors.Join(errs...)
}

const maxOwner = 128

func checkOwner(owner string) error {
	if owner == "" || len(owner) > maxOwner {
		return argument.Invalid("Owner", "%d bytes, want 1 to %d that name the service", len(owner), maxOwner)
	}
	return nil
}
