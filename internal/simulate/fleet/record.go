package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/wakebell/wakebell"
)

// record has what happened, for the judge. All instants are those of the bubble, whose clock is
// that of Redis too.
type record struct {
	mu      sync.Mutex
	writes  []*write
	runs    []*run
	turns   []*turn
	guards  []guarding
	alarms  []*alarm
	arrived []arrival
	series  []*series
	joins   []*join
	ends    readEnds
	losses  []*span // of writes of Redis
	faults  []*span
	trouble []string // what no promise allows, seen at once
	lines   []string // of the trace
}

// outcome is how a call has ended.
type outcome int

const (
	unknown outcome = iota // it may have had its effect, or have it later
	done
	refused // it had no effect
)

func (o outcome) String() string { return [...]string{"unknown", "done", "refused"}[o] }

// write is a call that schedules or cancels a timer, or publishes a message.
type write struct {
	subject  string // topic and id; empty id: the timer has one of its own
	body     string // names the write; empty: it cancels
	key      string // of the order; empty: none
	path     string // on which it was made
	from, to time.Time
	due      time.Time // at the earliest
	until    time.Time // due at the latest, if it is done
	result   outcome
	pending  bool // it found a pending timer
	single   bool // repetitions have no effect, so that there is one timer
}

// run is a call of a handler.
type run struct {
	subject  string
	body     string
	attempt  int
	at       string // the process
	from, to time.Time
	lost     time.Time // when its context ended; zero: it did not
	acked    bool      // it returned nil while its context was alive
	handled  bool      // or its verdict may count: a drain had just ended it, or its ack was not answered
	over     bool
	number   string // of the run of a recurring schedule

	// Of a subscriber:
	of     string // the node from which it has its leases
	goesOn bool   // it goes on when its context ends
	left   bool   // its context ended with its subscription

	// Of a consumer over HTTP:
	received time.Time // when the answer to its claim arrived; zero: it is another consumer
	promised time.Time // until when the answer says that the lease lasts
	expires  time.Time // when it expires in Redis, unless it is extended
	sent     time.Time // when its verdict was sent; zero: it sent none
	accepted bool      // the verdict
}

// end is when the run was over for others: when it returned or its context ended. Redis counts
// leases in whole microseconds.
func (r *run) end() time.Time {
	if !r.lost.IsZero() && (!r.over || r.lost.Before(r.to)) {
		return micros(r.lost)
	}
	return micros(r.to)
}

// settled is when the verdict was sent.
func (r *run) settled() time.Time {
	if r.sent.After(r.to) {
		return r.sent
	}
	return r.to
}

// taken is when the lease was claimed, as far as that is known.
func (r *run) taken() time.Time {
	if r.received.IsZero() {
		return r.from
	}
	return r.expires.Add(-leaseTTL)
}

// grace is how long the result of a handler counts after the end of its subscription.
const grace = time.Second

// span is a time during which something was wrong.
type span struct {
	name     string
	from, to time.Time // to is zero until it is mended
}

func (f *fleet) trace(format string, args ...any) {
	f.record.mu.Lock()
	defer f.record.mu.Unlock()
	f.record.line(format, args...)
}

// line adds a line to the trace. mu is held.
func (r *record) line(format string, args ...any) {
	r.lines = append(r.lines, time.Now().Format("15:04:05.000000 ")+fmt.Sprintf(format, args...))
}

// check notes an error that no call may have.
func (f *fleet) check(err error, doing string) {
	if err == nil || stopped(err) {
		return
	}
	f.record.mu.Lock()
	defer f.record.mu.Unlock()
	f.record.trouble = append(f.record.trouble, doing+": "+err.Error())
	f.record.line("%s: %v", doing, err)
}

// fault notes that something goes wrong until the returned function is called.
func (f *fleet) fault(format string, args ...any) (mended func()) {
	s := &span{name: fmt.Sprintf(format, args...), from: time.Now()}
	f.record.mu.Lock()
	defer f.record.mu.Unlock()
	f.record.faults = append(f.record.faults, s)
	f.record.line("fault: %s", s.name)
	return func() {
		f.record.mu.Lock()
		defer f.record.mu.Unlock()
		s.to = time.Now()
		f.record.line("mended: %s", s.name)
	}
}

func subjectOf(topic, id string) string { return topic + "/" + id }

func topicOf(subject string) string { topic, _, _ := strings.Cut(subject, "/"); return topic }

func idOf(subject string) string { _, id, _ := strings.Cut(subject, "/"); return id }

// begin records a call of a handler.
func (f *fleet) begin(ctx context.Context, subject, body string, attempt int, at string) (r *run, stop func() bool) {
	r = &run{subject: subject, body: body, attempt: attempt, at: at, from: time.Now()}
	f.record.mu.Lock()
	f.record.runs = append(f.record.runs, r)
	f.record.line("%s begins %s %s, attempt %d", at, subject, body, attempt)
	f.record.mu.Unlock()
	return r, context.AfterFunc(ctx, func() {
		f.record.mu.Lock()
		defer f.record.mu.Unlock()
		r.lost, r.left = time.Now(), errors.Is(context.Cause(ctx), context.Canceled)
		f.record.line("%s: the context of %s %s ends: %v", at, subject, body, context.Cause(ctx))
	})
}

// finish records that a handler has returned.
func (f *fleet) finish(ctx context.Context, r *run, how string) {
	f.record.mu.Lock()
	defer f.record.mu.Unlock()
	r.to, r.over = time.Now(), true
	r.acked = how == acks && ctx.Err() == nil
	r.handled = r.acked || how == acks && (errors.Is(context.Cause(ctx), wakebell.ErrDraining) || r.goesOn && r.left && r.to.Sub(r.lost) <= grace)
	f.record.line("%s: %s %s %s", r.at, r.subject, r.body, how)
}
