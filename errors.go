package wakebell

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/actors"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops"
	"github.com/wakebell/wakebell/redisops/timers"
)

// Errors to branch on with errors.Is.
var (
	// ErrInvalid is wrapped by errors about an argument or a configuration
	// field. They name it and its bound; nothing was written.
	ErrInvalid = redisops.ErrInvalid

	// ErrNotFound says that there is no such timer.
	ErrNotFound = redisops.ErrNotFound

	// ErrUnavailable is wrapped by errors that say that Redis as a whole does
	// not serve now: unreachable, loading, failing over. The outcome of the
	// call is unknown; calling again is safe.
	ErrUnavailable = exchange.ErrUnavailable

	// ErrMemoryFull says that Redis has reached maxmemory; nothing was written.
	ErrMemoryFull = redisops.ErrMemoryFull

	// ErrForbidden says that the rights of a node do not allow what was asked of it
	// over the network. Nothing was done.
	ErrForbidden = exchange.ErrForbidden

	// ErrDenied says that Redis did not let the user of the connection do it:
	// wrong credentials, or no right to a command or a key.
	ErrDenied = redisops.ErrDenied

	// ErrTooFewReplicas says that a timer is stored, and that fewer replicas
	// than WithReplicas asks for confirmed it in time. A *ReplicasError has the
	// numbers.
	ErrTooFewReplicas = timers.ErrTooFewReplicas

	// ErrWrongType says that a key of the topic holds something else.
	ErrWrongType = redisops.ErrWrongType

	// ErrTooLarge is wrapped by the error of Get for a timer whose payload, which
	// another program wrote, has more bytes than are read: 16 MiB, or PayloadLimit
	// if that is more. The error names both sizes.
	ErrTooLarge = redisops.ErrTooLarge

	// ErrUnsupported says that the Redis server cannot keep timers: it is too
	// old, or a Cluster that would spread a topic over several slots.
	ErrUnsupported = redisops.ErrUnsupported

	// ErrKeyUsed says that an idempotency key was used for another request
	// within the last 24 hours; nothing was written.
	ErrKeyUsed = redisops.ErrKeyUsed

	// ErrChannelDenied says that the Redis user has no right to a channel that
	// Tail needs; see docs/keys.md.
	ErrChannelDenied = redisops.ErrChannelDenied

	// ErrUnfinished is wrapped by System.Stop when handlers did not return in
	// time. Their timers were released; the error names them.
	ErrUnfinished = errors.New("handlers did not return in time")

	// ErrNameTaken says that the ActorSystem has a System of this name already.
	ErrNameTaken = actors.ErrNameTaken

	// ErrStarted says that the System was started before.
	ErrStarted = errors.New("system was started before")
)

// ReplicasError says how many replicas confirmed a timer; see WithReplicas.
type ReplicasError = timers.ReplicasError

// Retryable reports whether the call that gave err may succeed when it is made
// again as it was, later: Redis is unavailable or full, fewer replicas than
// asked for have confirmed, or the deadline of the context passed. It is false
// for what the caller has to change, for what is not there, for a context that
// was cancelled and for a Redis client that was closed. All calls are safe to
// make again; see Client.
func Retryable(err error) bool {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, redis.ErrClosed):
		return false
	default:
		return errors.Is(err, ErrUnavailable) || errors.Is(err, ErrMemoryFull) ||
			errors.Is(err, ErrTooFewReplicas) || errors.Is(err, context.DeadlineExceeded)
	}
}

// Why a handler's context ended, as context.Cause tells.
var (
	// ErrCancelled: the timer was cancelled while its handler ran.
	ErrCancelled = poller.ErrCancelled
	// ErrLeaseLost: the lease ended before it could be extended; another
	// handler may have the timer now.
	ErrLeaseLost = poller.ErrLeaseLost
	// ErrSuperseded: the timer was scheduled again while its handler ran. It
	// ends no context; Settle and Extend return it.
	ErrSuperseded = poller.ErrSuperseded
	// ErrSettled: Settle was called before. It ends no context.
	ErrSettled = poller.ErrSettled
	// ErrLeaseTooOld: the handler ran longer than MaxLeaseAge.
	ErrLeaseTooOld = poller.ErrLeaseTooOld
	// ErrDraining: the drain's deadline passed; the timer is released. Of a
	// request to the gateway: Stop has begun, and it was refused.
	ErrDraining = poller.ErrDraining
	// ErrStopped: the runtime was stopped without a drain.
	ErrStopped = poller.ErrStopped
)

// Reject ends a timer for good: it is not retried but becomes a dead letter
// with err as its reason (or is discarded, see DiscardRejected). A handler
// returns it, wrapped or not; Reject(nil) is a rejection without a reason.
func Reject(err error) error { return &rejection{err} }

type rejection struct{ err error }

func (r *rejection) Error() string {
	if r.err == nil {
		return "rejected"
	}
	return r.err.Error()
}

func (r *rejection) Unwrap() error { return r.err }

// RetryIn has a timer retried after d (at least 0) instead of the topic's
// backoff. It counts as a failure. A handler returns it, wrapped or not; to
// give a reason too, wrap it: fmt.Errorf("bank is closed: %w", RetryIn(d)).
func RetryIn(d time.Duration) error { return &retryIn{d} }

type retryIn struct{ delay time.Duration }

func (r *retryIn) Error() string { return "retry in " + r.delay.String() }

// verdict turns what a handler returned into an outcome.
func verdict(err error) poller.Outcome {
	if err == nil {
		return poller.Succeeded()
	}
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
	if r, ok := errors.AsType[*retryIn](err); ok {
		return poller.FailedFor(r.delay, err)
	}
	return poller.Failed(err)
}

// invalid says that field is wrong and why.
func invalid(field, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrInvalid, field, fmt.Sprintf(format, args...))
}
