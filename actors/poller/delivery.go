package poller

import (
	"context"
	"errors"
	"time"

	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/internal/metrics"
	"github.com/wakebell/wakebell/internal/usercode"
	"github.com/wakebell/wakebell/messages/exchange"
)

// The causes with which the context of a handler ends; see context.Cause. Package leasing
// describes those of the lease.
var (
	ErrCancelled   = leasing.ErrCancelled
	ErrLeaseLost   = leasing.ErrLeaseLost
	ErrLeaseTooOld = leasing.ErrLeaseTooOld
	ErrDraining    = leasing.ErrDraining
	// ErrStopped: the poller was stopped or restarted; the timer is due again
	// when its lease expires.
	ErrStopped = errors.New("poller stopped")
)

// The other errors of Delivery.Settle and Delivery.Extend.
var (
	ErrSuperseded = leasing.ErrSuperseded
	ErrSettled    = leasing.ErrSettled
)

// Delivery is a lease as its handler sees it.
type Delivery struct {
	exchange.Lease
	Topic string

	// Claimed is the source's clock when the lease was claimed.
	Claimed time.Time

	// LeaseTTL is the length of the lease, counted from Claimed and from each
	// extension.
	LeaseTTL time.Duration

	// MaxFailures is the failure at which the timer is dead-lettered, as it was in
	// force at the claim.
	MaxFailures int

	lease *lease
}

// Lateness is how long after its activation the timer was claimed, by the source's
// clock. Retries do not change the activation.
func (d *Delivery) Lateness() time.Duration { return d.Claimed.Sub(d.Activation) }

// Waited returns how long the delivery has waited on this node for its handler, at an
// instant.
func (d *Delivery) Waited(at time.Time) time.Duration { return at.Sub(d.lease.core.Queued) }

// LateAt returns how late the timer is at an instant, by the source's clock.
func (d *Delivery) LateAt(at time.Time) time.Duration { return d.lease.core.Late + d.Waited(at) }

// Handle runs user code on a delivery and says what became of it. It may be
// called from many goroutines at once. Its context ends, with one of the
// causes above, when the delivery is no longer the handler's.
type Handle func(ctx context.Context, d *Delivery) Outcome

// Outcome is the result of a delivery. The zero value is success. Reason is the text of the
// error: the poller calls no method of it.
type Outcome leasing.Outcome

// Succeeded settles the timer as handled.
func Succeeded() Outcome { return Outcome{} }

// Failed counts a failure; the timer is due again after the topic's backoff.
func Failed(err error) Outcome { return Outcome{Kind: leasing.Failed, Reason: usercode.Text(err)} }

// FailedFor counts a failure; the timer is due again after delay.
func FailedFor(delay time.Duration, err error) Outcome {
	return Outcome{Kind: leasing.FailedFor, Delay: max(delay, 0), Reason: usercode.Text(err)}
}

// Snoozed counts neither a failure nor an attempt; the timer is due again after delay.
func Snoozed(delay time.Duration, err error) Outcome {
	return Outcome{Kind: leasing.Snoozed, Delay: max(delay, 0), Reason: usercode.Text(err)}
}

// Expired ends a timer that is too late to begin, as a dead letter or without a trace.
func Expired(reason string, dead bool) Outcome {
	if dead {
		return Outcome{Kind: leasing.ExpiredDead, Reason: reason}
	}
	return Outcome{Kind: leasing.Expired, Reason: reason}
}

// Rejected ends the timer without a retry, as the topic's reject policy says.
func Rejected(err error) Outcome { return Outcome{Kind: leasing.Rejected, Reason: usercode.Text(err)} }

// Undeliverable dead-letters a timer that no handler can decode, also where rejected
// timers are discarded.
func Undeliverable(err error) Outcome {
	return Outcome{Kind: leasing.Undeliverable, Reason: usercode.Text(err)}
}

// Released returns the timer as if it had never been claimed: it is due at once.
func Released() Outcome { return Outcome{Kind: leasing.Released} }

// Crashed settles nothing: the timer is due again when its lease expires.
func Crashed(err error) Outcome { return Outcome{Kind: leasing.Crashed, Reason: usercode.Text(err)} }

// Result is how the handler ended, for the metrics.
func (o Outcome) Result() metrics.Result {
	switch o.Kind {
	case leasing.Failed, leasing.FailedFor:
		return metrics.Failed
	case leasing.Rejected:
		return metrics.Rejected
	case leasing.Undeliverable:
		return metrics.Undeliverable
	case leasing.Panicked, leasing.Crashed:
		return metrics.Crashed
	case leasing.Released, leasing.Skipped, leasing.Snoozed, leasing.Expired, leasing.ExpiredDead:
		return metrics.Released
	case leasing.Succeeded:
	}
	return metrics.Handled
}
