package wakebelltest

import (
	"context"
	"sync"
	"testing"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/testhook"
)

// Timer makes what a handler of the topic gets, for a test that calls the
// handler itself, with or without a World. The body travels as it would, so it
// is what would be left of it. The options are those of Topic.Schedule; the
// timer is delivered at its instant for the first time, and its fields may be
// changed. Settle and Extend go to the Lease that LeaseOf gives.
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

// Lease stands for the lease of a timer that Timer made. It is safe for
// concurrent use.
type Lease struct {
	mu         sync.Mutex
	settled    bool
	verdict    error
	extensions int
	cause      error // why it is no longer the handler's; nil: it is
}

// LeaseOf is the lease of a timer that Timer made; nil for any other.
func LeaseOf(m wakebell.Meta) *Lease {
	l, _ := testhook.HolderOf(m).(*Lease)
	return l
}

// Settle is what Settle of the timer calls.
func (l *Lease) Settle(_ context.Context, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if standing := l.standing(); standing != nil {
		return standing
	}
	l.settled, l.verdict = true, err
	return nil
}

// Extend is what Extend of the timer calls.
func (l *Lease) Extend(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if standing := l.standing(); standing != nil {
		return standing
	}
	l.extensions++
	return nil
}

func (l *Lease) standing() error {
	if l.settled {
		return wakebell.ErrSettled
	}
	return l.cause
}

// End takes the lease from the handler: from now on Settle and Extend return
// cause, which is ErrSuperseded, ErrCancelled or ErrLeaseLost of package
// wakebell. The handler's context is the test's to end.
func (l *Lease) End(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cause = cause
}

// Settled says whether the handler called Settle, and with what verdict.
func (l *Lease) Settled() (settled bool, verdict error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.settled, l.verdict
}

// Extensions counts the calls of Extend that were granted.
func (l *Lease) Extensions() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.extensions
}
