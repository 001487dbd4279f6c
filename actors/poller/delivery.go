package poller

import (
	"context"
	"errors"
	"time"

	"github.com/wakebell/wakebell/internal/metrics"
	"github.com/wakebell/wakebell/internal/usercode"
	"github.com/wakebell/wakebell/messages/exchange"
)

// The causes with which the context of a handler ends; see context.Cause.
var (
	// ErrCancelled: the timer was cancelled while its handler ran.
	ErrCancelled = errors.New("timer cancelled while its handler ran")
	// ErrLeaseLost: the lease expired before it could be extended. Another
	// handler may have the timer now; the outcome of this one may be refused.
	ErrLeaseLost = errors.New("lease lost")
	// ErrLeaseTooOld: the handler ran longer than the maximum lease age.
	ErrLeaseTooOld = errors.New("maximum lease age reached")
	// ErrDraining: the drain's deadline passed; the timer is released.
	ErrDraining = errors.New("draining: the deadline passed")
	// ErrStopped: the poller was stopped or restarted; the timer is due again
	// when its lease expires.
	ErrStopped = errors.New("poller stopped")
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
func (d *Delivery) Waited(at time.Time) time.Duration { return at.Sub(d.lease.queued) }

// Handle runs user code on a delivery and says what became of it. It may be
// called from many goroutines at once. Its context ends, with one of the
// causes above, when the delivery is no longer the handler's.
type Handle func(ctx context.Context, d *Delivery) Outcome

// Outcome is the result of a delivery. The zero value is success.
type Outcome struct {
	kind   outcomeKind
	delay  time.Duration
	reason string // the text of the error: the poller calls no method of it

	// Of the call of user code, if it is measured; see concurrency.go.
	took           time.Duration
	further, small bool // as in guard.Sample
}

type outcomeKind uint8

const (
	succeeded     outcomeKind = iota
	failed                    // retried after the topic's backoff
	failedFor                 // retried after delay
	rejected                  // never retried
	undeliverable             // no handler can decode it
	crashed                   // panicked: not settled, due again when the lease expires
	released                  // returned as if never claimed
	skipped                   // its context ended before a handler began
)

// Succeeded settles the timer as handled.
func Succeeded() Outcome { return Outcome{} }

// Failed counts a failure; the timer is due again after the topic's backoff.
func Failed(err error) Outcome { return Outcome{kind: failed, reason: usercode.Text(err)} }

// FailedFor counts a failure; the timer is due again after delay.
func FailedFor(delay time.Duration, err error) Outcome {
	return Outcome{kind: failedFor, delay: max(delay, 0), reason: usercode.Text(err)}
}

// Rejected ends the timer without a retry, as the topic's reject policy says.
func Rejected(err error) Outcome { return Outcome{kind: rejected, reason: usercode.Text(err)} }

// Undeliverable dead-letters a timer that no handler can decode, also where rejected
// timers are discarded.
func Undeliverable(err error) Outcome {
	return Outcome{kind: undeliverable, reason: usercode.Text(err)}
}

// Released returns the timer as if it had never been claimed: it is due at once.
func Released() Outcome { return Outcome{kind: released} }

// Crashed settles nothing: the timer is due again when its lease expires.
func Crashed(err error) Outcome { return Outcome{kind: crashed, reason: usercode.Text(err)} }

// Result is how the handler ended, for the metrics.
func (o Outcome) Result() metrics.Result {
	switch o.kind {
	case failed, failedFor:
		return metrics.Failed
	case rejected:
		return metrics.Rejected
	case undeliverable:
		return metrics.Undeliverable
	case crashed:
		return metrics.Crashed
	case released, skipped:
		return metrics.Released
	case succeeded:
	}
	return metrics.Handled
}

// retries reports whether the outcome leads to a retry.
func (o Outcome) retries() bool { return o.kind == failed || o.kind == failedFor }
