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

var _ Timers = (*Client)(nil)

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
