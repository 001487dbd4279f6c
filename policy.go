package wakebell

import (
	"errors"
	"time"

	"github.com/wakebell/wakebell/redisops/timers"
)

// Policy says what becomes of a timer whose id exists.
type Policy = timers.Policy

const (
	// PolicyReplace gives the id the new body and instant. A handler that runs on
	// the old ones is superseded: it goes on, and its verdict counts no more.
	PolicyReplace = timers.Replace
	// PolicyKeep changes nothing.
	PolicyKeep = timers.Keep
	// PolicyEarliest replaces a pending timer if the new instant is before the one
	// at which it would be delivered next, else it changes nothing. A handler
	// that runs is superseded.
	PolicyEarliest = timers.Earliest
)

// IfExists says what to do when the id exists; default PolicyReplace. Debounce is a
// policy of its own and excludes it.
func IfExists(p Policy) ScheduleOption {
	return func(d *Draft) error {
		switch {
		case p > PolicyEarliest:
			return invalid("IfExists", "unknown policy %d", p)
		case d.policy == timers.Debounce:
			return invalid("IfExists", "Debounce is the policy")
		}
		d.policy = p
		return nil
	}
}

// Debounce makes the timer due d from now, and if the id is pending moves it
// there, with the new body: it is delivered when no schedule has come for d,
// with the last body. Limit bounds how long that may go on: the timer is due at
// the latest limit after the first schedule; 0 is no bound. d is above 0, limit
// at least d.
//
// A delivery that failed ends the count: the next schedule is a first one, and
// so is one that comes while a handler runs, which is superseded. Every caller
// that uses an id should use the same limit: each call goes by its own.
func Debounce(d, limit time.Duration) ScheduleOption {
	return func(draft *Draft) error {
		switch {
		case d <= 0:
			return invalid("Debounce", "%v, want above 0", d)
		case limit != 0 && limit < d:
			return invalid("Debounce", "a limit of %v, want at least the delay of %v, or 0", limit, d)
		case draft.policy != PolicyReplace:
			return invalid("Debounce", "it is a policy of its own, without IfExists")
		}
		draft.in, draft.maxDelay, draft.policy = d, limit, timers.Debounce
		return draft.plan()
	}
}

// Once has the id fire once, however often it is scheduled with Once from now
// until window (1 ms – 100 years) after the instant at which it is due: the
// schedule that is retried because its reply was lost does no harm, even when
// the timer has fired meanwhile. In that time
//
//   - a timer that was not delivered yet goes by its policy, as without Once;
//   - one that was (its handler runs, or it waits for its next attempt) is kept;
//   - one that is gone, because it was handled, became a dead letter or was
//     cancelled, is not written again: the outcome is AlreadyDone.
//
// A schedule of the same id without Once asks for none of it. The window should
// be longer than the retries of the caller and those of the timer together.
// Redis keeps a small key per timer until the window is over; do without it
// where Redis may evict keys that expire.
func Once(window time.Duration) ScheduleOption {
	return func(d *Draft) error {
		d.once = window
		return within("Once", window, time.Millisecond, timers.MaxOnce)
	}
}

// WithReplicas has Schedule return only when n replicas (1 – 100) of the Redis
// that keeps the timer have confirmed it, or with ErrTooFewReplicas after
// timeout (1 ms – 1 min, cut to the deadline of the context). The timer is
// stored in either case and will be delivered; scheduling it again, which is as
// safe as ever, asks again. Drafts of one topic that are stored together wait for
// the most that one of them asks for.
//
// It is Redis's WAIT: it makes a failover that loses the timer unlikely, not
// impossible. A replica has the timer in memory then and not on its disk, and a
// failover may choose a replica that has not confirmed. It says nothing of what
// comes later: that the timer was claimed, or handled, is not waited for.
func WithReplicas(n int, timeout time.Duration) ScheduleOption {
	return func(d *Draft) error {
		d.replicas, d.replicaTimeout = n, timeout
		return errors.Join(within("WithReplicas", n, 1, timers.MaxReplicas),
			within("WithReplicas timeout", timeout, time.Millisecond, timers.MaxReplicaTimeout))
	}
}
