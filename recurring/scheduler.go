package recurring

import (
	"errors"
	"fmt"
	"time"

	"github.com/wakebell/wakebell/internal/argument"
)

// SchedulerConfig makes a node fire recurring schedules (wakebell.Config). Any
// number of nodes may have one: each run is fired once, by one of them. The zero
// value works.
type SchedulerConfig struct {
	// Schedules are stored when the node starts, as by Schedules.Reconcile:
	// schedules that an earlier start of the same Owner and prefix stored and
	// that are missing here are deleted, each with a log line. nil changes
	// nothing.
	Schedules []Schedule

	// Owner names the service whose configuration Schedules is: 1 to 128 bytes,
	// the same on all of its nodes and after a restart. It is required with
	// Schedules. Services with different owners do not delete each other's
	// schedules.
	Owner string

	// TakeLock holds RedBeat's lock for all Wakebell nodes together, so that
	// Python beats wait. While a Python beat holds the lock, it alone fires,
	// whether TakeLock is set or not.
	TakeLock bool

	// MaxInterval is the beat_max_loop_interval of the Python beats, 0 to 24 h; 0
	// means 300 s. A Python beat that does not renew its lock for MaxInterval
	// + 30 s while schedules are overdue counts as dead.
	MaxInterval time.Duration

	// OnFire is called for each run that this node fires. It must not block: the
	// node fires nothing meanwhile. A panic is logged.
	OnFire func(Run)
}

// Validate reports all that is wrong with the configuration; nil is valid. Errors
// wrap wakebell.ErrInvalid.
func (c *SchedulerConfig) Validate() error {
	if c == nil {
		return nil
	}
	errs := []error{argument.Within("MaxInterval", c.MaxInterval, 0, 24*time.Hour)}
	if c.Schedules != nil {
		errs = append(errs, validateOwner(c.Owner))
	}
	if err := errors.Join(append(errs, validateAll(c.Schedules, nil))...); err != nil {
		return fmt.Errorf("scheduler: %w", err)
	}
	return nil
}

const maxOwner = 128

func validateOwner(owner string) error {
	if owner == "" || len(owner) > maxOwner {
		return argument.Invalid("Owner", "%d bytes, want 1 to %d that name the service", len(owner), maxOwner)
	}
	return nil
}

// validateAll checks the schedules of one owner, whose names must differ, with the texts
// of their rules. Crontabs without a zone are in the zone in; nil is UTC.
func validateAll(schedules []Schedule, in *time.Location) error {
	var errs []error
	seen := map[string]bool{}
	for i, s := range schedules {
		err := s.Validate()
		if err == nil {
			err = s.compile(in)
		}
		if seen[s.Name] {
			err = errors.Join(err, argument.Invalid("name", "it is given twice"))
		}
		if seen[s.Name] = true; err != nil {
			errs = append(errs, fmt.Errorf("schedule %d (%s): %w", i, argument.Quote(s.Name), err))
		}
	}
	return errors.Join(errs...)
}
