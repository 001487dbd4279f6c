package wakebell

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wakebell/wakebell/internal/codec"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/redisops/queue"
)

// Queue is a queue of messages for now: a name, the type of the bodies, and how
// they are published. It is a value, usually a package variable, shared by those
// who publish and those who handle; what is wrong with it is said where it is
// used.
//
// Its keys and bytes are those of redis-message-queue: Python publishes to it
// and consumes from it. How T travels: string and []byte as they are, a
// proto.Message as its bytes, anything else as JSON. There are no headers.
type Queue[T any] struct {
	name  string
	codec codec.Codec[T]
	set   queueSettings
	key   func(T) string // nil: none by itself
	err   error
}

// QueueName says which keys a queue has, for those who look at it.
type QueueName = queue.Name

// Message is what a handler of a queue gets. Its Activation is when it was
// published, as its id tells (Python's ids do not: then it is when it was
// claimed), Failures the deliveries before, for whatever reason.
type Message[T any] = Timer[T]

// queueSettings are a queue's options.
type queueSettings struct {
	separator, deadLetters string

	window    time.Duration
	cap       int
	whenFull  WhenFull
	freesKeys bool
	key       any // a func(T) string
}

// QueueOption says how messages of a queue are published, and what its keys are
// called. A wrong one makes every use of the queue fail with ErrInvalid.
type QueueOption func(*queueSettings) error

// NewQueue names a queue: 1 – 512 bytes, without NUL and without the separator.
// A Client or System with a Prefix puts it before the name.
func NewQueue[T any](name string, opts ...QueueOption) Queue[T] {
	q := Queue[T]{name: name, codec: codec.For[T]()}
	var errs []error
	for i, opt := range opts {
		if opt == nil {
			errs = append(errs, invalid("option", "number %d is nil", i))
			continue
		}
		errs = append(errs, opt(&q.set))
	}
	if q.set.key != nil {
		key, ok := q.set.key.(func(T) string)
		if !ok {
			errs = append(errs, invalid("DeduplicateBy", "a %T is not for bodies of %T", q.set.key, *new(T)))
		}
		q.key = key
	}
	if q.set.whenFull != FullFails && q.set.cap == 0 {
		errs = append(errs, invalid("PendingCap", "0"))
	}
	q.err = errors.Join(errs...)
	return q
}

// Name returns the name without any prefix.
func (q Queue[T]) Name() string { return q.name }

// Under is the queue with prefix before its name, as Group makes it of the
// handler's.
func (q Queue[T]) Under(prefix string) Queue[T] {
	q.name = prefix + q.name
	return q
}

// Keys says which keys the queue has, for the Client's calls that look at it.
func (q Queue[T]) Keys() QueueName {
	return QueueName{Name: q.name, Separator: q.set.separator, DeadLetters: q.set.deadLetters}
}

// DeduplicateBy has each message suppressed whose key, which fn tells, was
// published within the window (see Window). An empty key suppresses nothing.
func DeduplicateBy[T any](fn func(T) string) QueueOption {
	return func(s *queueSettings) error {
		if fn == nil {
			return invalid("DeduplicateBy", "nil")
		}
		s.key = fn
		return nil
	}
}

// Window is how long a deduplication key suppresses, 1 ms – 100 years; default
// 1 h.
func Window(d time.Duration) QueueOption {
	return func(s *queueSettings) error {
		s.window = d
		return within("Window", d, time.Millisecond, queue.MaxWindow)
	}
}

// WhenFull says what a publish does that finds as many messages waiting as
// PendingCap allows.
type WhenFull uint8

const (
	// FullFails: it fails with ErrQueueFull.
	FullFails WhenFull = iota
	// FullWaits: it waits for room, until its context ends.
	FullWaits
	// FullDropsOldest: the oldest messages are deleted, for good, at most 500 more
	// in one call than it publishes. Their deduplication keys are freed, if they
	// were published with FullDropsOldest or FreeKeyOnFailure.
	FullDropsOldest
)

// PendingCap bounds how many messages wait, 1 – 1,000,000,000; default: nothing
// does. It counts for those publishers that have it.
func PendingCap(n int, when WhenFull) QueueOption {
	return func(s *queueSettings) error {
		s.cap, s.whenFull = n, when
		if when > FullDropsOldest {
			return invalid("PendingCap", "unknown %d", when)
		}
		return within("PendingCap", n, 1, 1_000_000_000)
	}
}

// FreeKeyOnFailure has a message that fails for good (it is rejected, or was
// tried too often) release its deduplication key, so that it can be published
// again at once. It is for those who publish, who then keep a small key beside
// each message, and for those who handle. A key that a newer message has stays.
func FreeKeyOnFailure() QueueOption {
	return func(s *queueSettings) error {
		s.freesKeys = true
		return nil
	}
}

// KeySeparator stands between a queue's name and what a key is for, in all keys;
// default "::".
func KeySeparator(separator string) QueueOption {
	return func(s *queueSettings) error {
		s.separator = separator
		if separator == "" {
			return invalid("KeySeparator", "empty; leave it out for ::")
		}
		return nil
	}
}

// DeadLetterKey is the key of the list of dead letters, which in Python each
// consumer names for itself; default: the name, the separator and "dlq".
func DeadLetterKey(key string) QueueOption {
	return func(s *queueSettings) error {
		s.deadLetters = key
		if key == "" {
			return invalid("DeadLetterKey", "empty")
		}
		return nil
	}
}

// PublishOption says how one message is published.
type PublishOption func(*Publication) error

// Key is the message's deduplication key, in place of what DeduplicateBy says;
// empty: none.
func Key(key string) PublishOption {
	return func(p *Publication) error {
		p.key, p.keyed = key, true
		return nil
	}
}

// Publication is a message that is not yet published. Queue.Draft makes it. To
// publish the same one again is a retry: it is published once.
type Publication struct {
	queue   QueueName
	set     queueSettings
	message queue.Message
	payload []byte
	key     string
	keyed   bool
	err     error
}

// Draft makes a message that Client.Publish publishes, alone or with others in
// one round trip. What is wrong with it is said there.
func (q Queue[T]) Draft(body T, opts ...PublishOption) Publication {
	p := Publication{queue: q.Keys(), set: q.set, err: q.err}
	for i, opt := range opts {
		if opt == nil {
			p.err = errors.Join(p.err, invalid("option", "number %d is nil", i))
			continue
		}
		p.err = errors.Join(p.err, opt(&p))
	}
	raw, _, err := q.codec.Encode(body)
	if err != nil {
		p.err = errors.Join(p.err, fmt.Errorf("%w: body: %w", ErrInvalid, err))
	}
	if !p.keyed && q.key != nil && p.err == nil {
		p.key = q.key(body)
	}
	p.payload, p.message = raw, queue.NewMessage(raw, p.key)
	return p
}

// Publish puts a message into the queue, unless one of its deduplication key was
// within the window: then fresh is false. It may wait where PendingCap says so.
//
// A retry of go-redis whose first try had worked answers as that one did. A
// caller who retries after an error may publish twice where there is no
// deduplication key; to prevent it, keep what Draft made and give that to
// Client.Publish each time: a try within a minute is answered as the first one
// was. Errors: ErrInvalid, ErrQueueFull, ErrMemoryFull, ErrUnavailable.
func (q Queue[T]) Publish(ctx context.Context, c Publisher, body T, opts ...PublishOption) (fresh bool, err error) {
	published, err := c.Publish(ctx, q.Draft(body, opts...))
	if err != nil {
		return false, err
	}
	return published[0].Fresh, nil
}

// PublishAll publishes messages in their order, and says of each what became of
// it. It is Client.Publish, and keeps its promises.
func (q Queue[T]) PublishAll(ctx context.Context, c Publisher, bodies ...T) ([]Published, error) {
	drafts := make([]Publication, len(bodies))
	for i, body := range bodies {
		drafts[i] = q.Draft(body)
	}
	return c.Publish(ctx, drafts...)
}

// Read reads the body of a forwarded message.
func (q Queue[T]) Read(l *messages.Lease) (T, error) {
	body, err := q.codec.Decode(l.GetBody(), l.GetContentType())
	if err != nil {
		return body, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return body, nil
}

// handler makes what Handle makes of the queue.
func (q Queue[T]) handler(fn func(context.Context, Timer[T]) error, opts []HandlerOption) Handler {
	h := Handler{topic: q.name, fn: typed(q.codec, fn), set: defaultQueueSettings(), err: q.err}
	h.set.queue.name, h.set.queue.freesKeys = q.Keys(), q.set.freesKeys
	// Text is not JSON even where it looks like it; all else tells by itself.
	var zero T
	_, contentType, _ := q.codec.Encode(zero)
	if contentType != codec.ContentTypeText {
		contentType = ""
	}
	h.read = func(payload []byte) (envelope.Envelope, error) {
		return envelope.Envelope{Body: payload, ContentType: contentType}, nil
	}
	h.err = errors.Join(h.err, h.set.apply(opts))
	return h
}
