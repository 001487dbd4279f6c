package wakebell

import (
	"errors"
	"time"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// IfExists sets the policy for an existing id; default PolicyReplace. It excludes
// Debounce, which is a policy of its own.
func IfExists(p wakebelltype.Policy) ScheduleOption {
	return func(d *Draft) error {
		switch {
		case p > wakebelltype.PolicyEarliest:
			return argument.Invalid("IfExists", "unknown policy %d", p)
		case d.policy == wakebelltype.PolicyDebounce:
			return argument.Invalid("IfExists", "Debounce is the policy")
		}
		d.policy = p
		return nil
	}
}

// Debounce merges repeated calls for an id into one timer. The timer fires d after
// the last call, with that call's body, and at the latest limit after the first. A
// limit of 0 means no bound. d must be above 0, and limit 0 or at least d. It requires
// the option ID: without an id, each call would be a timer of its own.
//
// A failed delivery resets the limit: the next call counts as the first. So does a
// call while a handler runs, which is superseded. Each call applies its own limit,
// so use the same one in all calls for an id.
func Debounce(d, limit time.Duration) ScheduleOption {
	return func(draft *Draft) error {
		switch {
		case d <= 0:
			return argument.Invalid("Debounce", "%v, want above 0", d)
		case limit != 0 && limit < d:
			return argument.Invalid("Debounce", "a limit of %v, want at least the delay of %v, or 0", limit, d)
		case draft.policy != wakebelltype.PolicyReplace:
			return argument.Invalid("Debounce", "it is a policy of its own, without IfExists")
		}
		draft.in, draft.maxDelay, draft.policy = d, limit, wakebelltype.PolicyDebounce
		return draft.plan()
	}
}

// Once makes the id fire once, even if it is scheduled with Once repeatedly, from
// now until window after the instant at which it is due; window is 1 ms – 100
// years. Use it if a schedule may be retried after the timer has fired, because
// the reply was lost. It requires the option ID: without it each call has a new id.
// During that time
//
//   - a timer that was not delivered yet is treated by its policy;
//   - a timer that was delivered, and runs or waits for its next attempt, is kept;
//   - a timer that is gone, because it was handled, dead-lettered or cancelled, is
//     not written again: the Outcome is OutcomeAlreadyDone.
//
// A schedule of the same id without Once is not affected. The window should be
// longer than the retries of the caller and those of the timer together. Redis
// stores a small key per timer until the window is over; do not use Once if Redis
// may evict keys with an expiry.
func Once(window time.Duration) ScheduleOption {
	return func(d *Draft) error {
		d.once = window
		return within("Once", window, time.Millisecond, timers.MaxOnce)
	}
}

// WithReplicas makes Schedule wait until n replicas (1 – 100) have confirmed the
// timer, for at most timeout (1 ms – 1 min, shortened to the deadline of the
// context). If fewer confirm in time, the error is ErrTooFewReplicas. The timer is
// stored and will be delivered in either case; scheduling it again waits again.
// Drafts of one topic that are stored together wait for the largest n and timeout
// among them.
//
// WithReplicas uses the WAIT command: it makes the loss of the timer in a failover
// unlikely, not impossible. A replica that confirmed has the timer in memory, not
// necessarily on disk, and a failover may promote another replica. Later writes,
// such as claims and acks, are not waited for.
func WithReplicas(n int, timeout time.Duration) ScheduleOption {
	return func(d *Draft) error {
		d.replicas, d.replicaTimeout = n, timeout
		return errors.Join(within("WithReplicas", n, 1, timers.MaxReplicas),
			within("WithReplicas timeout", timeout, time.Millisecond, timers.MaxReplicaTimeout))
	}
}
