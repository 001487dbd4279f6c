package wakebell

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/wakebell/wakebell/internal/codec"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/redisops/timers"
)

// Topic is a kind of timer: a name and the type of its bodies. It is a value,
// usually a package variable, shared by those who schedule and those who
// handle; the zero value has an empty name, which every use refuses.
//
// How T travels: string as text/plain, a proto.Message as
// application/x-protobuf, []byte as it is, anything else as application/json.
// A Topic[[]byte] delivers bodies of every content type, as they travelled.
type Topic[T any] struct {
	name  string
	codec codec.Codec[T]
}

// NewTopic names a topic: 1 – 512 bytes of any text, checked where it is used.
// A Client or System with a Prefix puts it before the name.
func NewTopic[T any](name string) Topic[T] {
	return Topic[T]{name: name, codec: codec.For[T]()}
}

// Name returns the name without any prefix.
func (t Topic[T]) Name() string { return t.name }

// Under is the topic with prefix before its name, as Group makes it of the
// handler's.
func (t Topic[T]) Under(prefix string) Topic[T] {
	t.name = prefix + t.name
	return t
}

// Schedule stores a timer that delivers body to a handler of the topic, and
// returns its id: the one given with ID, or a new UUID. Without In or At it is
// due at once.
//
// Calling again after an error is safe if the id is given: the timer is then
// replaced by itself. If it was due at once and has fired already, it fires
// again, unless Once prevents it. With ErrTooFewReplicas it is stored, and the
// id is returned beside the error.
func (t Topic[T]) Schedule(ctx context.Context, c Timers, body T, opts ...ScheduleOption) (id string, err error) {
	if c == nil {
		return "", invalid("client", "nil")
	}
	scheduled, err := c.Schedule(ctx, t.Draft(body, opts...))
	if len(scheduled) == 0 {
		return "", err
	}
	return scheduled[0].ID, err
}

// Draft makes a timer that Client.Schedule stores, alone or with others in one
// round trip. What is wrong with it is said there.
func (t Topic[T]) Draft(body T, opts ...ScheduleOption) Draft {
	made := drafts.Get().(*Draft) // nothing else is put there
	d := t.draft(made, body, opts)
	*made = Draft{}
	drafts.Put(made)
	return d
}

// drafts are what options change: a function that is called through a variable
// makes what it points to escape, at a fifth of the memory of a schedule.
var drafts = sync.Pool{New: func() any { return new(Draft) }}

func (t Topic[T]) draft(d *Draft, body T, opts []ScheduleOption) Draft {
	d.topic = t.name
	for i, opt := range opts {
		if opt == nil {
			d.err = invalid("option", "number %d is nil", i)
			return *d
		}
		if err := opt(d); err != nil {
			d.err = err
			return *d
		}
	}
	if d.id == "" {
		d.id = uuid.NewString()
	}
	raw, contentType, err := t.codec.Encode(body)
	switch {
	case err != nil:
		d.err = fmt.Errorf("%w: body: %w", ErrInvalid, err)
	case contentType == "":
		contentType = d.env.ContentType
	case d.env.ContentType != "":
		d.err = invalid("ContentType", "the body is %s by its type", contentType)
	}
	d.env.Body, d.env.ContentType = raw, contentType
	return *d
}

// Cancel removes a timer and says what it was doing. The context of a handler
// that runs on it ends with ErrCancelled.
func (t Topic[T]) Cancel(ctx context.Context, c Timers, id string) (Presence, error) {
	if c == nil {
		return Absent, invalid("client", "nil")
	}
	presences, err := c.Cancel(ctx, t.name, id)
	if err != nil {
		return Absent, err
	}
	return presences[0], nil
}

// Draft is a timer that is not yet stored. Topic.Draft makes it.
type Draft struct {
	topic, id      string
	env            envelope.Envelope
	at             time.Time
	in             time.Duration
	planned        bool // At, In or Debounce was given
	policy         timers.Policy
	maxDelay       time.Duration // of Debounce
	once           time.Duration
	replicas       int // to confirm it within replicaTimeout
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
		return timers.Entry{}, invalid("body", "%d bytes with its headers, the limit is %d", len(payload), limit)
	}
	e := timers.Entry{
		ID: d.id, Payload: payload, At: d.at, In: d.in,
		Policy: d.policy, MaxDelay: d.maxDelay, Once: d.once,
		Replicas: d.replicas, ReplicaTimeout: d.replicaTimeout,
	}
	return e, e.Validate()
}

// ScheduleOption says when and how a timer is scheduled. A wrong one makes
// Schedule fail with ErrInvalid before anything is written.
type ScheduleOption func(*Draft) error

// In makes the timer due d after Redis has it, by Redis's clock. A negative d
// is due at once. In, At and Debounce exclude each other.
func In(d time.Duration) ScheduleOption {
	return func(draft *Draft) error {
		draft.in = max(d, 0)
		return draft.plan()
	}
}

// At makes the timer due at t, rounded up to the microsecond. A t in the past
// is due at once; the zero time is refused.
func At(t time.Time) ScheduleOption {
	return func(draft *Draft) error {
		if t.IsZero() {
			return invalid("At", "the zero time is no instant")
		}
		draft.at = t
		return draft.plan()
	}
}

func (d *Draft) plan() error {
	if d.planned {
		return invalid("In, At, Debounce", "one of them, once")
	}
	d.planned = true
	return nil
}

// ID gives the timer an id of the caller's, 1 – 512 bytes of UTF-8, unique in
// its topic. If a timer of this id exists it is replaced, unless IfExists says
// otherwise. Default: a new UUID.
func ID(id string) ScheduleOption {
	return func(d *Draft) error {
		if id == "" {
			return invalid("ID", "empty; leave it out for a new one")
		}
		d.id = id
		return nil
	}
}

// Header adds a header, each part at most 65,535 bytes. The same key again
// replaces the value. The names correlation_id, content-type and reply_to
// belong to the envelope: use CorrelationID for the first.
func Header(key, value string) ScheduleOption {
	return func(d *Draft) error {
		if err := envelope.CheckHeader(key, value); err != nil {
			return invalid("Header "+quoted(key), "%v", err)
		}
		d.env.Headers = append(d.env.Headers, envelope.Header{Key: key, Value: value})
		return nil
	}
}

// CorrelationID sets the id that ties the timer to what caused it, at most
// 65,535 bytes. Default: the timer's id.
func CorrelationID(id string) ScheduleOption {
	return func(d *Draft) error {
		if len(id) > envelope.MaxHeaderBytes {
			return invalid("CorrelationID", "%d bytes, at most %d", len(id), envelope.MaxHeaderBytes)
		}
		d.env.CorrelationID = id
		return nil
	}
}

// ContentType says what the bytes of a body are, at most 65,535 bytes; default
// none. It is for topics of []byte: the other types have their own content
// type, and giving another is refused.
func ContentType(mediaType string) ScheduleOption {
	return func(d *Draft) error {
		if len(mediaType) > envelope.MaxHeaderBytes {
			return invalid("ContentType", "%d bytes, at most %d", len(mediaType), envelope.MaxHeaderBytes)
		}
		d.env.ContentType = mediaType
		return nil
	}
}

// quoted returns an input as it is shown in errors: shortened and in quotes.
func quoted(s string) string { return strconv.Quote(text.Clip(s, 64)) }

// Recurring returns a recurring schedule whose runs are timers of the topic with
// this body. Its name has 1 to 400 bytes. Put returns the error of a body that
// cannot be encoded.
func (t Topic[T]) Recurring(name string, when recurring.Rule, body T) recurring.Schedule {
	r := recurring.Schedule{Name: name, Topic: t.name, Rule: when}
	var err error
	if r.Body, r.ContentType, err = t.codec.Encode(body); err != nil {
		r.Err = fmt.Errorf("%w: body: %w", ErrInvalid, err)
	}
	return r
}
