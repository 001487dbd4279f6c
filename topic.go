package wakebell

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/codec"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Topic is a kind of timer: a name and the type of its bodies. It is usually a
// package variable, shared by the code that schedules and the code that handles.
// The zero value has an empty name and is invalid.
//
// A string is encoded as text/plain, a proto.Message as application/x-protobuf,
// and other types as application/json; []byte is not encoded. A Topic[[]byte]
// delivers bodies of every content type undecoded.
type Topic[T any] struct {
	name  string
	codec codec.Codec[T]
}

// NewTopic returns a topic. Its name has 1 – 512 bytes, including the Prefix that
// a Client or System puts before it; calls that use the topic check the length.
func NewTopic[T any](name string) Topic[T] {
	return Topic[T]{name: name, codec: codec.For[T]()}
}

// Name returns the name without any prefix.
func (t Topic[T]) Name() string { return t.name }

// Under returns the topic with prefix before its name, for use with handlers in a
// Group of this prefix.
func (t Topic[T]) Under(prefix string) Topic[T] {
	t.name = prefix + t.name
	return t
}

// Schedule stores a timer that delivers body to a handler of the topic, and
// returns its id: that of the option ID, or a new UUID. Without In, At or Debounce
// the timer is due at once.
//
// Repeating the call after an error is safe if it has the option ID, because the
// timer then replaces itself. A timer that was due at once may have fired by then,
// and fires again; Once prevents this. With ErrTooFewReplicas the timer is stored,
// and its id is returned with the error.
func (t Topic[T]) Schedule(ctx context.Context, c TimerClient, body T, opts ...ScheduleOption) (id string, err error) {
	if c == nil {
		return "", argument.Invalid("client", "nil")
	}
	scheduled, err := c.Schedule(ctx, t.Draft(body, opts...))
	if len(scheduled) == 0 {
		return "", err
	}
	return scheduled[0].ID, err
}

// Draft returns a draft of a timer for Client.Schedule, which stores several drafts
// in one round trip and returns the error of an invalid one.
func (t Topic[T]) Draft(body T, opts ...ScheduleOption) Draft {
	made := drafts.Get().(*Draft) // nothing else is put there
	d := t.draft(made, body, opts)
	*made = Draft{}
	drafts.Put(made)
	return d
}

// drafts pools the drafts that options change. The compiler cannot see what an option
// does with its draft and allocates it on the heap; that would be a fifth of the
// memory that a schedule allocates.
var drafts = sync.Pool{New: func() any { return new(Draft) }}

func (t Topic[T]) draft(d *Draft, body T, opts []ScheduleOption) Draft {
	d.topic = t.name
	for i, opt := range opts {
		if opt == nil {
			d.err = argument.Invalid("option", "number %d is nil", i)
			return *d
		}
		if err := opt(d); err != nil {
			d.err = err
			return *d
		}
	}
	if d.id == "" {
		if d.err = d.needsID(); d.err != nil {
			return *d
		}
		d.id = newID()
	}
	if d.join != nil {
		if d.err = d.join.check(d); d.err != nil {
			return *d
		}
	}
	raw, contentType, err := t.codec.Encode(body)
	switch {
	case err != nil:
		d.err = fmt.Errorf("%w: body: %w", ErrInvalid, err)
	case contentType == "":
		contentType = d.env.ContentType
	case d.env.ContentType != "":
		d.err = argument.Invalid("ContentType", "the body is %s by its type", contentType)
	}
	d.env.Body, d.env.ContentType = raw, contentType
	return *d
}

// Cancel removes a timer and returns the state in which it found it. The context
// of a running handler is cancelled with the cause ErrCancelled; see [Client.Cancel].
func (t Topic[T]) Cancel(ctx context.Context, c TimerClient, id string) (wakebelltype.Presence, error) {
	if c == nil {
		return wakebelltype.PresenceAbsent, argument.Invalid("client", "nil")
	}
	presences, err := c.Cancel(ctx, t.name, id)
	if err != nil {
		return wakebelltype.PresenceAbsent, err
	}
	return presences[0], nil
}

// Recurring returns a recurring schedule whose runs are timers of the topic with
// this body. Its name has 1 – 400 bytes. If the body cannot be encoded,
// recurring.Schedules.Put returns the error.
func (t Topic[T]) Recurring(name string, when recurring.Rule, body T) recurring.Schedule {
	r := recurring.Schedule{Name: name, Topic: t.name, Rule: when}
	var err error
	if r.Body, r.ContentType, err = t.codec.Encode(body); err != nil {
		r.Err = fmt.Errorf("%w: body: %w", ErrInvalid, err)
	}
	return r
}

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
	PauseUntil(ctx context.Context, topic string, p wakebelltype.Pause) (wakebelltype.Control, error)
	Resume(ctx context.Context, topic string) (wakebelltype.Control, error)
	Retune(ctx context.Context, topic string, s wakebelltype.Settings) (wakebelltype.Control, error)

	DeadLetters(ctx context.Context, topic string, f wakebelltype.DeadFilter, p wakebelltype.Page) iter.Seq2[DeadLetter, error]
	DeadLetter(ctx context.Context, topic, entry string) (DeadLetter, error)
	LastDead(ctx context.Context, topic string, n int) ([]DeadLetter, error)
	Redrive(ctx context.Context, topic string, o wakebelltype.RedriveOptions) (wakebelltype.RedriveResult, error)
	DeleteDead(ctx context.Context, topic string, f wakebelltype.DeadFilter) (int64, error)

	Tail(ctx context.Context, topic string) iter.Seq2[wakebelltype.Event, error]
	AskNodes(ctx context.Context, topics ...string) ([]wakebelltype.NodeAnswer, error)
	Diagnose(ctx context.Context, topics ...string) ([]wakebelltype.Finding, error)
	History(ctx context.Context, topic string, f wakebelltype.HistoryFilter, p wakebelltype.Page) iter.Seq2[wakebelltype.Attempt, error]
	Throughput(ctx context.Context, topic string, since time.Duration) (wakebelltype.Throughput, error)
	CountDue(ctx context.Context, topic string, from time.Time, step time.Duration, n int) ([]int64, error)
	Audit(ctx context.Context, f wakebelltype.AuditFilter, p wakebelltype.Page) iter.Seq2[wakebelltype.AuditEntry, error]
	RecordChange(ctx context.Context, change wakebelltype.Change) error
}

var (
	_ TimerClient        = (*Client)(nil)
	_ recurring.Operator = (*recurring.Schedules)(nil)
	_ Operator           = (*Client)(nil)
)

// Reschedule gives a timer of the topic a new instant; see Client.Reschedule.
func (t Topic[T]) Reschedule(ctx context.Context, c TimerClient, id string, when ScheduleOption) (wakebelltype.Scheduled, error) {
	if c == nil {
		return wakebelltype.Scheduled{}, argument.Invalid("client", "nil")
	}
	return c.Reschedule(ctx, t.name, id, when)
}

// RunNow makes a timer of the topic due now; see Client.RunNow.
func (t Topic[T]) RunNow(ctx context.Context, c TimerClient, id string) (wakebelltype.Presence, error) {
	if c == nil {
		return wakebelltype.PresenceAbsent, argument.Invalid("client", "nil")
	}
	return c.RunNow(ctx, t.name, id)
}

// Report is what the handlers of a timer have reported. It outlives the timer; see KeepResults.
type Report struct {
	Progress *wakebelltype.Progress `json:"progress"` // nil: none
	Result   *Result                `json:"result"`   // nil: none
}

// Result is what a handler returned, still encoded; see HandleResult. ReadResult decodes it.
// While a timer exists, it is that of an attempt that is not acknowledged yet, or of an earlier
// timer of this id.
type Result struct {
	Content    Content   `json:"content"`
	Attempt    int       `json:"attempt"`
	Activation time.Time `json:"activation"` // of the timer
	At         time.Time `json:"at"`         // when it was stored, by Redis's clock
}

// Ending is how a timer has ended.
type Ending struct {
	End    wakebelltype.End `json:"end"`
	Reason string           `json:"reason"` // of a dead letter, or of a timer that expired
	Report
}

// Waiter returns what handlers have reported, and waits for timers. A Client implements it.
type Waiter interface {
	Report(ctx context.Context, topic, id string) (Report, error)
	Wait(ctx context.Context, topic, id string) (Ending, error)
}

var _ Waiter = (*Client)(nil)

// ReadResult decodes a result of a timer of a topic into an R, with the Payloads of the client
// if it was encoded. The error wraps ErrUnreadable.
func ReadResult[R any](ctx context.Context, c TimerClient, topic, id string, r *Result) (value R, err error) {
	if c == nil || r == nil {
		return value, argument.Invalid("result", "nil: the timer has none")
	}
	plain, err := decodedContent(ctx, c, payload.Encoded{
		Topic: topic, ID: id, Headers: r.Content.Headers, Body: r.Content.Body, ContentType: r.Content.ContentType,
	})
	if err == nil {
		value, err = codec.For[R]().Decode(plain.Body, plain.ContentType)
	}
	if err != nil {
		return value, fmt.Errorf("result of %s on %s: %w: %w", quoted(id), quoted(topic), ErrUnreadable, err)
	}
	return value, nil
}

// newID returns a random id of 128 bits in 22 digits and letters. With the 36 of a UUID Redis
// needs 64 bytes more for each pending timer, which has its id three times.
func newID() string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	const perHalf = 11 // 62^11 > 2^64
	var random [16]byte
	_, _ = rand.Read(random[:]) // it never fails
	id := make([]byte, 0, 2*perHalf)
	for half := range 2 {
		x := binary.LittleEndian.Uint64(random[8*half:])
		for range perHalf {
			id, x = append(id, digits[x%uint64(len(digits))]), x/uint64(len(digits))
		}
	}
	return string(id)
}
