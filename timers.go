package wakebell

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/wakebell/wakebell/recurring"
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

// Gatekeeper gives turns at gates: Gates here, or those of package remote.
type Gatekeeper interface {
	Acquire(ctx context.Context, name string) (*Turn, error)
	TryAcquire(ctx context.Context, name string) (*Turn, error)
	With(ctx context.Context, name string, fn func(ctx context.Context, fence uint64) error) error
	Guard(ctx context.Context, name, resource string, fence uint64) error
}

// Operator looks at topics and gives orders about them: a Client here, or one of
// package remote.
type Operator interface {
	Topics(ctx context.Context, discover bool) iter.Seq2[string, error]
	Overview(ctx context.Context, topics ...string) ([]Overview, error)
	Count(ctx context.Context, topic string) (Counts, error)
	CancelAll(ctx context.Context, topic string) (int64, error)
	Forget(ctx context.Context, topic string) error

	Control(ctx context.Context, topic string) (Control, error)
	Pause(ctx context.Context, topic, by, reason string) (Control, error)
	Resume(ctx context.Context, topic string) (Control, error)
	Retune(ctx context.Context, topic string, s Settings) (Control, error)

	DeadLetters(ctx context.Context, topic string, f DeadFilter) iter.Seq2[DeadLetter, error]
	DeadLetter(ctx context.Context, topic, entry string) (DeadLetter, error)
	LastDead(ctx context.Context, topic string, n int) ([]DeadLetter, error)
	Redrive(ctx context.Context, topic string, o RedriveOptions) (RedriveResult, error)
	DeleteDead(ctx context.Context, topic string, f DeadFilter) (int64, error)

	Tail(ctx context.Context, topic string) iter.Seq2[Event, error]
	Diagnose(ctx context.Context, topics ...string) ([]Finding, error)
}

// QueueOperator looks at queues and gives orders about them: a Client here, or
// one of package remote.
type QueueOperator interface {
	QueueStats(ctx context.Context, name QueueName) (QueueStats, error)
	QueueMessages(ctx context.Context, name QueueName, running bool) iter.Seq2[QueueMessage, error]
	PurgeQueue(ctx context.Context, name QueueName, running bool) (int64, error)
	PurgeQueueKept(ctx context.Context, name QueueName) (int64, error)

	QueueLetters(ctx context.Context, name QueueName, from int64) iter.Seq2[QueueLetter, error]
	QueueLetter(ctx context.Context, name QueueName, entry string) (QueueLetter, error)
	RedriveQueueLetter(ctx context.Context, name QueueName, l QueueLetter, o QueueRedrive) (LetterOutcome, string, error)
	DeleteQueueLetters(ctx context.Context, name QueueName, letters ...QueueLetter) (int, error)
}

// GateOperator looks at gates and gives orders about them: Gates here, or those
// of package remote.
type GateOperator interface {
	List(ctx context.Context) iter.Seq2[GateInfo, error]
	Show(ctx context.Context, name string) (GateInfo, error)
	ForceRelease(ctx context.Context, name string, fence uint64) (bool, error)
	Repair(ctx context.Context, name string, floor uint64) (GateRepaired, error)
	Remove(ctx context.Context, name string, force bool) (bool, error)
}

var (
	_ Timers             = (*Client)(nil)
	_ Publisher          = (*Client)(nil)
	_ recurring.Operator = (*recurring.Schedules)(nil)
	_ Gatekeeper         = (*Gates)(nil)
	_ Operator           = (*Client)(nil)
	_ QueueOperator      = (*Client)(nil)
	_ GateOperator       = (*Gates)(nil)
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
