package wakebell

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/actors"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/usercode"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Errors to branch on with errors.Is.
var (
	// ErrInvalid is wrapped by errors about an argument or a configuration
	// field. Their text names it and its bound. Nothing was written.
	ErrInvalid = wakebelltype.ErrInvalid

	// ErrNotFound means that the timer or dead letter does not exist;
	// recurring.ErrNotFound wraps it.
	ErrNotFound = wakebelltype.ErrNotFound

	// ErrUnavailable is wrapped by errors of a Redis that is unreachable,
	// loading or failing over. The outcome of the call is unknown; repeating it
	// is safe.
	ErrUnavailable = exchange.ErrUnavailable

	// ErrMemoryFull means that Redis has reached maxmemory; nothing was written.
	ErrMemoryFull = wakebelltype.ErrMemoryFull

	// ErrForbidden means that a node refused a request over the network, because
	// the client lacks the permission for it. Nothing was done.
	ErrForbidden = exchange.ErrForbidden

	// ErrDenied means that Redis rejected the credentials, or that the Redis
	// user lacks the permission for a command or a key.
	ErrDenied = wakebelltype.ErrDenied

	// ErrTooFewReplicas means that the timer is stored, but fewer replicas than
	// WithReplicas requires confirmed it in time. A *ReplicasError has the
	// numbers.
	ErrTooFewReplicas = wakebelltype.ErrTooFewReplicas

	// ErrWrongType means that a key of the topic holds a value of another type.
	ErrWrongType = wakebelltype.ErrWrongType

	// ErrTooLarge is wrapped by the error of Get for a timer of another program
	// whose payload exceeds the limit for reading: 16 MiB, or PayloadLimit if it
	// is larger. The text names both sizes.
	ErrTooLarge = wakebelltype.ErrTooLarge

	// ErrUnsupported means that the Redis server cannot store timers: it is too
	// old, or a Cluster in which the keys of a topic have different slots.
	ErrUnsupported = wakebelltype.ErrUnsupported

	// ErrKeyUsed means that an idempotency key was used for another request
	// within the last 24 hours; nothing was written.
	ErrKeyUsed = wakebelltype.ErrKeyUsed

	// ErrChannelDenied means that the Redis user lacks the permission for a
	// channel that Tail needs; see docs/keys.md.
	ErrChannelDenied = wakebelltype.ErrChannelDenied

	// ErrUnfinished is wrapped by the error of System.Stop when handlers did not
	// return in time. Their timers were released; the text names them.
	ErrUnfinished = errors.New("handlers did not return in time")

	// ErrNameTaken means that the ActorSystem already has a System of this name.
	ErrNameTaken = actors.ErrNameTaken

	// ErrStarted means that the System was started before.
	ErrStarted = errors.New("system was started before")
)

// Retryable reports whether the same call may succeed later: Redis is
// unavailable or out of memory, too few replicas confirmed, or the deadline of
// the context passed. It returns false for errors that the caller has to correct,
// for ErrNotFound, for a cancelled context and for a closed Redis client. All
// calls are safe to repeat; see Client.
func Retryable(err error) bool {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, redis.ErrClosed):
		return false
	default:
		return errors.Is(err, ErrUnavailable) || errors.Is(err, ErrMemoryFull) ||
			errors.Is(err, ErrTooFewReplicas) || errors.Is(err, context.DeadlineExceeded)
	}
}

// Causes of the end of a handler's context (see context.Cause), and errors of
// Meta.Settle and Meta.Extend.
var (
	// ErrCancelled means that the timer was cancelled while its handler ran.
	ErrCancelled = poller.ErrCancelled
	// ErrLeaseLost means that the lease expired before it was extended. Another
	// handler may hold the timer now.
	ErrLeaseLost = poller.ErrLeaseLost
	// ErrSuperseded means that the timer was scheduled again while its handler
	// ran. Settle and Extend return it; it does not cancel a context.
	ErrSuperseded = poller.ErrSuperseded
	// ErrSettled means that Settle was called before. It does not cancel a
	// context.
	ErrSettled = poller.ErrSettled
	// ErrLeaseTooOld means that the handler ran longer than MaxLeaseAge.
	ErrLeaseTooOld = poller.ErrLeaseTooOld
	// ErrDraining means that the drain's timeout passed and the timer is
	// released. As an answer of a node, it means that its System is stopping or
	// has not started, and that the request was refused.
	ErrDraining = poller.ErrDraining
	// ErrStopped means that the System was stopped without a drain.
	ErrStopped = poller.ErrStopped
)

// Reject returns the error by which a handler dead-letters its timer without
// further retries; err is the reason. With DiscardRejected the timer is deleted
// instead. The handler may wrap the error. Reject(nil) gives no reason.
func Reject(err error) error { return &rejection{err} }

type rejection struct{ err error }

func (r *rejection) Error() string {
	if r.err == nil {
		return "rejected"
	}
	return r.err.Error()
}

func (r *rejection) Unwrap() error { return r.err }

// RetryIn returns the error by which a handler retries its timer after d, which
// is at least 0, instead of the topic's backoff. It counts as a failure. To give
// a reason, wrap it: fmt.Errorf("bank is closed: %w", RetryIn(d)).
func RetryIn(d time.Duration) error { return &retryIn{d} }

type retryIn struct{ delay time.Duration }

func (r *retryIn) Error() string { return "retry in " + r.delay.String() }

// The bounds of Snooze.
const (
	MinSnooze = time.Millisecond
	MaxSnooze = 365 * 24 * time.Hour
)

// Snooze returns the error by which a handler has its timer delivered again after d, from
// MinSnooze to MaxSnooze, because it is not yet time for it. It is no failure: it uses up
// no attempt, Attempt and Failures stay, and it is counted and recorded apart, as snoozed. To
// give a reason, wrap it: fmt.Errorf("the shop is closed: %w", Snooze(d)). Of a d out of bounds
// it returns an error that wraps ErrInvalid, and the handler has failed. A snooze counts as
// a failure of a message of a queue.
func Snooze(d time.Duration) error {
	if d < MinSnooze || d > MaxSnooze {
		return argument.Invalid("snooze", "%v, want %v to %v", d, MinSnooze, MaxSnooze)
	}
	return &snooze{d}
}

type snooze struct{ delay time.Duration }

func (s *snooze) Error() string { return "snoozed for " + s.delay.String() }

// SnoozeDelay returns the delay if err is or wraps an error of Snooze, and whether it does.
func SnoozeDelay(err error) (time.Duration, bool) {
	s, ok := errors.AsType[*snooze](err)
	if !ok {
		return 0, false
	}
	return s.delay, true
}

// Release returns the error by which a handler gives its timer back as if it had not
// been delivered: it is due again at once, on any node, and its attempts stay. A handler
// returns it when the reason lies in this process and not in the timer, for instance a
// program that is not installed, and pauses the topic here before (System.PauseLocal), or
// the timer may come back at once. err says why.
func Release(err error) error { return fmt.Errorf("%w: %w", errReleased, err) }

// verdict converts the error of a handler into an outcome.
func verdict(err error) (o poller.Outcome) {
	if err == nil {
		return poller.Succeeded()
	}
	defer func() { // of a method of err
		if reason := recover(); reason != nil {
			o = poller.Failed(usercode.Panicked("Unwrap(), Is() or As()", reason))
		}
	}()
	if c, ok := errors.AsType[*crash](err); ok {
		return poller.Crashed(c)
	}
	if errors.Is(err, errReleased) {
		return poller.Released()
	}
	if errors.Is(err, ErrUnreadable) {
		return poller.Undeliverable(err)
	}
	if _, ok := errors.AsType[*rejection](err); ok {
		return poller.Rejected(err)
	}
	if s, ok := errors.AsType[*snooze](err); ok {
		return poller.Snoozed(s.delay, err)
	}
	if r, ok := errors.AsType[*retryIn](err); ok {
		return poller.FailedFor(r.delay, err)
	}
	return poller.Failed(err)
}

// IsRejected reports whether err is or wraps an error of Reject.
func IsRejected(err error) bool {
	_, ok := errors.AsType[*rejection](err)
	return ok
}

// IsReleased reports whether err is or wraps an error of Release.
func IsReleased(err error) bool { return errors.Is(err, errReleased) }

// RetryDelay returns the delay if err is or wraps an error of RetryIn, and whether
// it does.
func RetryDelay(err error) (time.Duration, bool) {
	r, ok := errors.AsType[*retryIn](err)
	if !ok {
		return 0, false
	}
	return r.delay, true
}
