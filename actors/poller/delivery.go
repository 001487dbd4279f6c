package poller

import (
	"context"
	"errors"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
)

// Why the context of a handler ends; context.Cause tells.
var (
	// ErrCancelled: the timer was cancelled while its handler ran.
	ErrCancelled = errors.New("timer cancelled while its handler ran")
	// ErrLeaseLost: the lease ended before it could be extended. Another
	// handler may have the timer now; the verdict of this one may be refused.
	ErrLeaseLost = errors.New("lease lost")
	// ErrLeaseTooOld: the handler ran longer than the maximum lease age.
	ErrLeaseTooOld = errors.New("maximum lease age reached")
	// ErrDraining: the drain's deadline passed; the timer is released.
	ErrDraining = errors.New("draining: the deadline passed")
	// ErrStopped: the poller was stopped or restarted; the timer comes back
	// when its lease ends.
	ErrStopped = errors.New("poller stopped")
)

// Delivery is one lease in the hands of a handler.
type Delivery struct {
	exchange.Lease
	Topic string

	// Claimed is the source's clock when the lease was claimed.
	Claimed time.Time

	// LeaseTTL is how long the lease is good from Claimed, and from each
	// extension.
	LeaseTTL time.Duration

	lease *lease // of which this is the handler's view
}

// Lateness is how long after its activation the timer was claimed, by the
// source's clock. For a retry it counts from the first activation.
func (d *Delivery) Lateness() time.Duration { return d.Claimed.Sub(d.Activation) }

// Handle runs user code on a delivery and says what became of it. It may be
// called from many goroutines at once. Its context ends, with one of the
// causes above, when the delivery is no longer the handler's.
type Handle func(ctx context.Context, d *Delivery) Outcome

// Outcome is what a handler made of a delivery. The zero value is success.
type Outcome struct {
	kind  outcomeKind
	delay time.Duration
	err   error
}

type outcomeKind uint8

const (
	succeeded     outcomeKind = iota
	failed                    // retried after the topic's backoff
	failedFor                 // retried after delay
	rejected                  // never retried
	undeliverable             // no handler can read it
	crashed                   // panicked: no verdict, comes back by lease
	released                  // given back as if never claimed
	skipped                   // ended before a handler began
)

// Succeeded settles the timer as handled.
func Succeeded() Outcome { return Outcome{} }

// Failed counts a failure; the timer is due again after the topic's backoff.
func Failed(err error) Outcome { return Outcome{kind: failed, err: err} }

// FailedFor counts a failure; the timer is due again after delay.
func FailedFor(delay time.Duration, err error) Outcome {
	return Outcome{kind: failedFor, delay: max(delay, 0), err: err}
}

// Rejected ends the timer without a retry, as the topic's reject policy says.
func Rejected(err error) Outcome { return Outcome{kind: rejected, err: err} }

// Undeliverable makes a dead letter of a timer that no handler can read,
// whatever the reject policy.
func Undeliverable(err error) Outcome { return Outcome{kind: undeliverable, err: err} }

// Released gives the timer back as if it had never been claimed: it is due at
// once.
func Released() Outcome { return Outcome{kind: released} }

// Crashed is no verdict: the timer comes back when its lease ends.
func Crashed(err error) Outcome { return Outcome{kind: crashed, err: err} }

// retries reports whether the timer would be tried again.
func (o Outcome) retries() bool { return o.kind == failed || o.kind == failedFor }

func (o Outcome) reason() string {
	if o.err == nil {
		return ""
	}
	return o.err.Error()
}
