package wakebell

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/codec"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/redisops/timers"
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
		d.id = uuid.NewString()
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

// needsID returns the error of an option that compares calls by their id, which would
// do nothing for a timer whose id is new in each call.
func (d *Draft) needsID() error {
	switch {
	case d.policy == wakebelltype.PolicyDebounce:
		return argument.Invalid("Debounce", "without an id: calls are merged by their id, and without one each is a new timer")
	case d.once != 0:
		return argument.Invalid("Once", "without an id: it is the id that fires once, and without one each call has a new id")
	}
	return nil
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

// Draft is a timer that is not stored yet. Topic.Draft returns it.
type Draft struct {
	topic, id      string
	env            envelope.Envelope
	at             time.Time
	in             time.Duration
	planned        bool // whether At, In or Debounce was given
	policy         wakebelltype.Policy
	maxDelay       time.Duration // of Debounce
	key            string
	once           time.Duration
	replicas       int // that must confirm it within replicaTimeout
	replicaTimeout time.Duration
	err            error
}

// ID returns the id that the timer will have.
func (d Draft) ID() string { return d.id }

// entry encodes the draft for the store.
func (d Draft) entry(limit int) (timers.Entry, error) {
	if d.err != nil {
		return timers.Entry{}, d.err
	}
	d.env.CorrelationID = d.env.CorrelationOr(d.id)
	payload, err := envelope.Encode(d.env)
	if err != nil {
		return timers.Entry{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if len(payload) > limit {
		return timers.Entry{}, argument.Invalid("body", "%d bytes with its headers, the limit is %d", len(payload), limit)
	}
	return timers.Entry{
		ID: d.id, Payload: payload, At: d.at, In: d.in,
		Key: d.key, Policy: d.policy, MaxDelay: d.maxDelay, Once: d.once,
		Replicas: d.replicas, ReplicaTimeout: d.replicaTimeout,
	}, nil
}

// ScheduleOption sets when and how a timer is scheduled. Schedule returns
// ErrInvalid for an invalid one, and writes nothing.
type ScheduleOption func(*Draft) error

// In makes the timer due d after it is stored, by Redis's clock; at once if d is
// negative. In, At and Debounce exclude each other.
func In(d time.Duration) ScheduleOption {
	return func(draft *Draft) error {
		draft.in = max(d, 0)
		return draft.plan()
	}
}

// At makes the timer due at t, rounded up to the microsecond; at once if t is in
// the past. The zero time is invalid.
func At(t time.Time) ScheduleOption {
	return func(draft *Draft) error {
		if t.IsZero() {
			return argument.Invalid("At", "zero time")
		}
		draft.at = t
		return draft.plan()
	}
}

func (d *Draft) plan() error {
	if d.planned {
		return argument.Invalid("In, At, Debounce", "one of them, once")
	}
	d.planned = true
	return nil
}

// ID sets the id of the timer, 1 – 512 bytes of UTF-8; default a new UUID. Ids are
// unique in a topic: an existing timer of the same id is replaced, unless IfExists
// or Debounce sets another policy.
func ID(id string) ScheduleOption {
	return func(d *Draft) error {
		if id == "" {
			return argument.Invalid("ID", "empty; leave it out for a new one")
		}
		d.id = id
		return nil
	}
}

// Header adds a header; key and value have at most 65,535 bytes each. A second
// header with the same key replaces the value. The keys correlation_id,
// content-type and reply_to are reserved; use CorrelationID and ContentType.
func Header(key, value string) ScheduleOption {
	return func(d *Draft) error {
		if err := envelope.CheckHeader(key, value); err != nil {
			return argument.Invalid("Header "+quoted(key), "%v", err)
		}
		d.env.Headers = append(d.env.Headers, envelope.Header{Key: key, Value: value})
		return nil
	}
}

// CorrelationID sets the id that relates the timer to its cause, at most 65,535
// bytes; default the timer's id.
func CorrelationID(id string) ScheduleOption {
	return func(d *Draft) error {
		if len(id) > envelope.MaxHeaderBytes {
			return argument.Invalid("CorrelationID", "%d bytes, at most %d", len(id), envelope.MaxHeaderBytes)
		}
		d.env.CorrelationID = id
		return nil
	}
}

// ContentType sets the media type of the body of a Topic[[]byte], at most 65,535
// bytes; default none. It is invalid for other topics, whose type determines the
// content type.
func ContentType(mediaType string) ScheduleOption {
	return func(d *Draft) error {
		if len(mediaType) > envelope.MaxHeaderBytes {
			return argument.Invalid("ContentType", "%d bytes, at most %d", len(mediaType), envelope.MaxHeaderBytes)
		}
		d.env.ContentType = mediaType
		return nil
	}
}

// quoted returns an input for an error text, shortened and in quotes.
func quoted(s string) string { return strconv.Quote(text.Clip(s, 64)) }

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
