package wakebell

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TimerClient schedules, cancels and inspects timers. The methods of a Topic take
// one. A Client implements it with Redis, and the Client of package remote
// implements it over the network.
type TimerClient interface {
	Schedule(ctx context.Context, drafts ...Draft) ([]wakebelltype.Scheduled, error)
	Cancel(ctx context.Context, topic string, ids ...string) ([]wakebelltype.Presence, error)
	Reschedule(ctx context.Context, topic, id string, when ScheduleOption) (wakebelltype.Scheduled, error)
	RunNow(ctx context.Context, topic, id string) (wakebelltype.Presence, error)
	Get(ctx context.Context, topic, id string) (Info, Content, error)
	List(ctx context.Context, topic string, f Filter, p wakebelltype.Page) iter.Seq2[Info, error]
	Stats(ctx context.Context, topic string) (wakebelltype.Stats, error)
}

// Operator inspects and administers topics. A Client and the Client of package
// remote implement it.
type Operator interface {
	Topics(ctx context.Context, discover bool, p wakebelltype.Page) iter.Seq2[string, error]
	Stats(ctx context.Context, topic string) (wakebelltype.Stats, error)
	Overview(ctx context.Context, topics ...string) ([]wakebelltype.Overview, error)
	CancelAll(ctx context.Context, topic string) (int64, error)
	Forget(ctx context.Context, topic string) error
	RemoveTopic(ctx context.Context, topic string) (wakebelltype.TopicRemoval, error)

	Shards(ctx context.Context, topic string) (wakebelltype.ShardLayout, error)
	Divide(ctx context.Context, topic string, shards int) (wakebelltype.ShardLayout, error)
	Reshard(ctx context.Context, topic string, shards int) iter.Seq2[wakebelltype.Resharding, error]

	Control(ctx context.Context, topic string) (wakebelltype.Control, error)
	Pause(ctx context.Context, topic, by, reason string) (wakebelltype.Control, error)
	Resume(ctx context.Context, topic string) (wakebelltype.Control, error)
	Retune(ctx context.Context, topic string, s wakebelltype.Settings) (wakebelltype.Control, error)

	DeadLetters(ctx context.Context, topic string, f wakebelltype.DeadFilter, p wakebelltype.Page) iter.Seq2[DeadLetter, error]
	DeadLetter(ctx context.Context, topic, entry string) (DeadLetter, error)
	LastDead(ctx context.Context, topic string, n int) ([]DeadLetter, error)
	Redrive(ctx context.Context, topic string, o wakebelltype.RedriveOptions) (wakebelltype.RedriveResult, error)
	DeleteDead(ctx context.Context, topic string, f wakebelltype.DeadFilter) (int64, error)

	Tail(ctx context.Context, topic string) iter.Seq2[wakebelltype.Event, error]
	Diagnose(ctx context.Context, topics ...string) ([]wakebelltype.Finding, error)
	History(ctx context.Context, topic string, f wakebelltype.HistoryFilter, p wakebelltype.Page) iter.Seq2[wakebelltype.Attempt, error]
	Throughput(ctx context.Context, topic string, since time.Duration) (wakebelltype.Throughput, error)
	Audit(ctx context.Context, f wakebelltype.AuditFilter, p wakebelltype.Page) iter.Seq2[wakebelltype.AuditEntry, error]
	RecordChange(ctx context.Context, change wakebelltype.Change) error
}

var (
	_ TimerClient        = (*Client)(nil)
	_ recurring.Operator = (*recurring.Schedules)(nil)
	_ Operator           = (*Client)(nil)
)

// IsRejected reports whether err is or wraps an error of Reject.
func IsRejected(err error) bool {
	_, ok := errors.AsType[*rejection](err)
	return ok
}

// IsReleased reports whether err is or wraps an error of Release.
func IsReleased(err error) bool { return errors.Is(err, errReleased) }

// RetryDelay returns the delay if err is or wraps an error of RetryIn, and whether
// it does.
func RetryDelay(err error) (time.Duration, bool) {
	r, ok := errors.AsType[*retryIn](err)
	if !ok {
		return 0, false
	}
	return r.delay, true
}
