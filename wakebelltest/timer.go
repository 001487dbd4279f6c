package wakebelltest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/internal/testhook"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Timer returns a timer for a test that calls a handler itself, with or without a
// World. The options are those of Topic.Schedule. The body is encoded and decoded
// as in a delivery, and the fields are those of the first delivery at the instant
// of the timer; they may be changed. Its methods are those of the Lease that LeaseOf
// returns.
func Timer[T any](t testing.TB, topic wakebell.Topic[T], body T, opts ...wakebell.ScheduleOption) wakebell.Timer[T] {
	t.Helper()
	meta, err := testhook.Meta(topic.Draft(body, opts...), &Lease{})
	if err != nil {
		t.Fatalf("wakebelltest: a timer of %q: %v", topic.Name(), err)
	}
	timer := wakebell.Timer[T]{Meta: meta.(wakebell.Meta)}
	timer.Body = Body[T](t, wakebell.Content{
		CorrelationID: timer.CorrelationID, ContentType: timer.ContentType, Body: timer.Raw,
	})
	return timer
}

// Lease is a fake lease of a timer that Timer returned. It is safe for concurrent
// use.
type Lease struct {
	mu         sync.Mutex
	settled    bool
	verdict    error
	extensions int
	cause      error // why the handler lost the lease; nil while it holds it
	checkpoint *wakebell.Content
	report     wakebell.Report

	ctx context.Context
	end context.CancelCauseFunc
}

// Context implements Context of the timer.
func (l *Lease) Context() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.context()
}

// context makes the context when it is first used. mu is held.
func (l *Lease) context() context.Context {
	if l.ctx == nil {
		//nolint:forbidigo // it ends with End
		l.ctx, l.end = context.WithCancelCause(context.Background())
	}
	return l.ctx
}

// LeaseOf returns the lease of a timer that Timer returned; nil for any other.
func LeaseOf(m wakebell.Meta) *Lease {
	l, _ := testhook.HolderOf(m).(*Lease)
	return l
}

// Settle implements Settle of the timer.
func (l *Lease) Settle(_ context.Context, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if standing := l.standing(); standing != nil {
		return standing
	}
	l.settled, l.verdict = true, err
	return nil
}

// Extend implements Extend of the timer.
func (l *Lease) Extend(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if standing := l.standing(); standing != nil {
		return standing
	}
	l.extensions++
	return nil
}

// Checkpoint implements Checkpoint of the timer.
func (l *Lease) Checkpoint(_ context.Context, env envelope.Envelope) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if standing := l.standing(); standing != nil {
		return standing
	}
	l.checkpoint = &wakebell.Content{
		Body: env.Body, ContentType: env.ContentType, CorrelationID: env.CorrelationID, ReplyTo: env.ReplyTo, Headers: env.Headers,
	}
	return nil
}

// Progress implements Progress of the timer.
func (l *Lease) Progress(_ context.Context, fraction float64, note string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if standing := l.standing(); standing != nil {
		return standing
	}
	l.report.Progress = &wakebelltype.Progress{Fraction: fraction, Note: note, Attempt: 1}
	return nil
}

// Result implements Result of the timer.
func (l *Lease) Result(_ context.Context, env envelope.Envelope) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if standing := l.standing(); standing != nil {
		return standing
	}
	l.report.Result = &wakebell.Result{Content: wakebell.Content{Body: env.Body, ContentType: env.ContentType, CorrelationID: env.CorrelationID}, Attempt: 1}
	return nil
}

// Report returns what the handler has reported last with Progress and Result.
func (l *Lease) Report() wakebell.Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.report
}

// LastCheckpoint returns the content that the handler's last Checkpoint gave the timer;
// false: it made none. Body decodes it.
func (l *Lease) LastCheckpoint() (content wakebell.Content, made bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.checkpoint == nil {
		return content, false
	}
	return *l.checkpoint, true
}

func (l *Lease) standing() error {
	if l.settled {
		return wakebell.ErrSettled
	}
	return l.cause
}

// End ends the lease: later calls of Settle and Extend return cause, which is
// ErrSuperseded, ErrCancelled or ErrLeaseLost of package wakebell. It cancels the
// context of the timer, unless cause is ErrSuperseded, but not a context that the test
// passes to the handler.
func (l *Lease) End(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cause = cause
	if l.context(); !errors.Is(cause, wakebell.ErrSuperseded) {
		l.end(cause)
	}
}

// Settled reports whether the handler called Settle, and its verdict.
func (l *Lease) Settled() (settled bool, verdict error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.settled, l.verdict
}

// Extensions returns the number of successful calls of Extend.
func (l *Lease) Extensions() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.extensions
}
