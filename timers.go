package wakebell

import (
	"context"
	"errors"
	"iter"
	"time"
)

// Timers is what a Client does, and what package remote's Client does from
// another process: code that takes it need not know where Redis is.
type Timers interface {
	Schedule(ctx context.Context, drafts ...Draft) ([]Scheduled, error)
	Cancel(ctx context.Context, topic string, ids ...string) ([]Presence, error)
	Reschedule(ctx context.Context, topic, id string, when ScheduleOption) (Scheduled, error)
	RunNow(ctx context.Context, topic, id string) (Presence, error)
	Get(ctx context.Context, topic, id string) (Info, Content, error)
	List(ctx context.Context, topic string, f Filter) iter.Seq2[Info, error]
	Stats(ctx context.Context, topic string) (Stats, error)
}

// Publisher publishes messages to queues: a Client here, or one of package
// remote.
type Publisher interface {
	Publish(ctx context.Context, drafts ...Publication) ([]Published, error)
}

// RecurringSchedules is what Schedules are for those who need not know where
// Redis is: here, or as package remote has it.
type RecurringSchedules interface {
	Put(ctx context.Context, schedules ...Recurring) error
	Get(ctx context.Context, name string) (RecurringState, error)
	List(ctx context.Context) iter.Seq2[RecurringState, error]
	Delete(ctx context.Context, name string) error
	Pause(ctx context.Context, name string) error
	Resume(ctx context.Context, name string) error
	RunNow(ctx context.Context, name string) (ScheduleRun, error)
	Preview(ctx context.Context, name string, n int) ([]time.Time, error)
}

// Gatekeeper gives turns at gates: Gates here, or those of package remote.
type Gatekeeper interface {
	Acquire(ctx context.Context, name string) (*Turn, error)
	TryAcquire(ctx context.Context, name string) (*Turn, error)
	With(ctx context.Context, name string, fn func(ctx context.Context, fence uint64) error) error
	Guard(ctx context.Context, name, resource string, fence uint64) error
}

var (
	_ Timers             = (*Client)(nil)
	_ Publisher          = (*Client)(nil)
	_ RecurringSchedules = (*Schedules)(nil)
	_ Gatekeeper         = (*Gates)(nil)
)

// IsRejected reports whether an error is a Reject, wrapped or not.
func IsRejected(err error) bool {
	_, ok := errors.AsType[*rejection](err)
	return ok
}

// RetryDelay is the delay of a RetryIn, wrapped or not, and whether the error
// is one.
func RetryDelay(err error) (time.Duration, bool) {
	r, ok := errors.AsType[*retryIn](err)
	if !ok {
		return 0, false
	}
	return r.delay, true
}
