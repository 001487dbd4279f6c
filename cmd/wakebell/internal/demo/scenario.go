package demo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/wakebelltype"
)

// scenarioTimer is one timer of the demo and its expected outcome.
type scenarioTimer struct {
	id   string
	plan string
	in   time.Duration

	handle func(ctx context.Context, d *demo, t wakebell.Timer[string]) error
	cancel func(ctx context.Context, d *demo, id string) error // nil: it is not cancelled

	ending   string
	attempts int
}

const (
	endFired     = "fired"
	endRetried   = "failed, was retried, fired"
	endCrashed   = "crashed its actor, returned after its lease, fired"
	endGivenUp   = "failed 3 times, is a dead letter"
	endCancelled = "was cancelled before it was due"
	endStopped   = "was cancelled while it ran"
)

var scenario = []scenarioTimer{
	{id: "tea", plan: "fires", in: time.Second, handle: fires, ending: endFired, attempts: 1},
	{id: "letter", plan: "fails at first", in: 2 * time.Second, handle: failsOnce, ending: endRetried, attempts: 2},
	{id: "crash", plan: "panics at first", in: 3 * time.Second, handle: panicsOnce, ending: endCrashed, attempts: 2},
	{id: "broken", plan: "fails every time", in: 4 * time.Second, handle: failsAlways, ending: endGivenUp, attempts: maxAttempts},
	{id: "long", plan: "runs until it is cancelled", in: 6 * time.Second, handle: runsOn, cancel: cancelRunning, ending: endStopped, attempts: 1},
	{id: "regret", plan: "is cancelled before it is due", in: 11 * time.Second, handle: fires, cancel: cancelEarly, ending: endCancelled},
}

// lastInstant is when the last timer would be due.
func lastInstant() (last time.Duration) {
	for _, s := range scenario {
		last = max(last, s.in)
	}
	return last
}

// demo is the state of one run of the demo.
type demo struct {
	*narrator
	topic  wakebell.Topic[string]
	sys    *wakebell.System
	client *wakebell.Client
	began  chan string // ids of timers whose handlers wait to be cancelled
	pace   int         // factor by which the demo is slowed down

	mu      sync.Mutex
	records map[string]*record // complete before the system starts
}

func (d *demo) paced(t time.Duration) time.Duration { return t * time.Duration(d.pace) }

// record is what happened to a timer.
type record struct {
	attempts int
	lateness time.Duration // of the first attempt
	ending   string
}

func (r *record) shown() string {
	if r.ending == "" {
		return "nothing"
	}
	return r.ending
}

func (d *demo) end(id, ending string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.records[id]; r != nil {
		r.ending = ending
	}
}

// handle records a delivery and runs the timer's part of the scenario.
func (d *demo) handle(ctx context.Context, t wakebell.Timer[string]) error {
	d.mu.Lock()
	r := d.records[t.ID]
	if r == nil {
		d.mu.Unlock()
		return wakebell.Reject(errors.New("not a timer of the demo"))
	}
	if r.attempts++; r.attempts == 1 {
		r.lateness = t.Lateness()
	}
	d.mu.Unlock()
	for _, s := range scenario {
		if s.id == t.ID {
			return s.handle(ctx, d, t)
		}
	}
	return nil
}

func fires(_ context.Context, d *demo, t wakebell.Timer[string]) error {
	d.tell(good, t.ID, "fires, %.1f ms after its due time", output.Millis(t.Lateness()))
	d.end(t.ID, endFired)
	return nil
}

func failsOnce(_ context.Context, d *demo, t wakebell.Timer[string]) error {
	if t.Attempt == 1 {
		d.tell(warn, t.ID, "fires; its handler fails, so it is retried in about %v", d.paced(retryDelay))
		return errors.New("the post office is closed")
	}
	d.tell(good, t.ID, "fires again, attempt %d, and succeeds", t.Attempt)
	d.end(t.ID, endRetried)
	return nil
}

func panicsOnce(_ context.Context, d *demo, t wakebell.Timer[string]) error {
	if t.Attempt == 1 {
		d.tell(bad, t.ID, "fires; its handler panics and the actor is restarted.")
		d.tell(bad, t.ID, "The timer is redelivered when its lease expires, in %v", d.paced(leaseTTL))
		panic("a panic of the demo")
	}
	d.tell(good, t.ID, "is redelivered, attempt %d, %.1f s late, and succeeds", t.Attempt, t.Lateness().Seconds())
	// The lease counts from the claim, which may come before the due time.
	if t.Lateness() < d.paced(leaseTTL)/2 {
		d.end(t.ID, fmt.Sprintf("was redelivered after %v, before its lease expired", t.Lateness()))
		return nil
	}
	d.end(t.ID, endCrashed)
	return nil
}

func failsAlways(_ context.Context, d *demo, t wakebell.Timer[string]) error {
	d.tell(warn, t.ID, "fires and fails, attempt %d of %d", t.Attempt, maxAttempts)
	return errors.New("permanent failure")
}

func runsOn(ctx context.Context, d *demo, t wakebell.Timer[string]) error {
	d.tell(info, t.ID, "fires; its handler runs until it is cancelled")
	d.began <- t.ID
	<-ctx.Done()
	cause := context.Cause(ctx)
	if errors.Is(cause, wakebell.ErrCancelled) {
		d.tell(good, t.ID, "its context ended: %v", cause)
		d.end(t.ID, endStopped)
	}
	return cause
}

func cancelEarly(ctx context.Context, d *demo, id string) error {
	if err := d.until(ctx, d.paced(9*time.Second)); err != nil {
		return err
	}
	presence, err := d.topic.Cancel(ctx, d.client, id)
	if err != nil {
		return err
	}
	if presence == wakebelltype.PresencePending {
		d.end(id, endCancelled)
	}
	d.tell(good, id, "cancelled: it was %v", presence)
	return nil
}

func cancelRunning(ctx context.Context, d *demo, id string) error {
	select {
	case <-d.began:
	case <-ctx.Done():
		return ctx.Err()
	}
	// Longer than a lease: the heartbeat extends it.
	if err := d.until(ctx, d.elapsed()+d.paced(leaseTTL+leaseTTL/4)); err != nil {
		return err
	}
	presence, err := d.topic.Cancel(ctx, d.client, id)
	if err != nil {
		return err
	}
	d.tell(info, id, "cancelled: it was %v; its heartbeat had extended the lease", presence)
	return nil
}
