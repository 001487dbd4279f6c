// Package queue publishes messages to queues, inspects the queues and redrives
// their dead letters. Package wakebell handles messages: see its HandleQueue and
// ForwardQueue. The keys and bytes are those of redis-message-queue.
package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/codec"
	"github.com/wakebell/wakebell/messages"
	queuestore "github.com/wakebell/wakebell/redisops/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Queue is a queue of messages that are due at once: a name, the type of the
// bodies, and the options of publishing. It is a value, usually a package variable
// that publishers and handlers share. Each use of a Queue with a wrong option fails
// with wakebell.ErrInvalid.
//
// Python programs can publish to it and consume from it with redis-message-queue.
// A string or []byte is stored as it is, a proto.Message as its bytes, anything
// else as JSON. Messages have no content type, and only the headers that spans and
// schedule middleware add.
type Queue[T any] struct {
	set   Settings
	codec codec.Codec[T]
	key   func(T) string // nil: no DeduplicateBy
	err   error
}

// Settings are the options of a queue as plain data. The zero values of all
// fields but Keys are the defaults.
type Settings struct {
	Keys wakebelltype.QueueKeys

	// DeduplicationWindow is how long a deduplication key suppresses further
	// messages of the same key, 1 ms to 100 years; 0 means 1 h.
	DeduplicationWindow time.Duration

	// PendingCap is the most messages that may wait, 1 to 1,000,000,000; 0 means
	// no limit. WhenFull is what a publish does at the cap.
	PendingCap int
	WhenFull   WhenFull

	// FreeKeyOnFailure releases the deduplication key of a message that finally
	// fails.
	FreeKeyOnFailure bool
}

func (s Settings) validate() error {
	return errors.Join(s.validateWindow(), s.validateCap())
}

func (s Settings) validateWindow() error {
	if s.DeduplicationWindow == 0 {
		return nil
	}
	return argument.Within("DeduplicationWindow", s.DeduplicationWindow, time.Millisecond, queuestore.MaxWindow)
}

func (s Settings) validateCap() error {
	switch {
	case s.WhenFull > FullDropsOldest:
		return argument.Invalid("PendingCap", "unknown %d", s.WhenFull)
	case s.PendingCap == 0 && s.WhenFull != FullDropsOldest:
		return nil
	}
	return argument.Within("PendingCap", s.PendingCap, 1, 1_000_000_000)
}

// choices are what options set.
type choices struct {
	Settings
	key any // a func(T) string; nil: no DeduplicateBy
}

// Option says how messages of a queue are published, and what its keys are
// called. A wrong one makes every use of the queue fail with ErrInvalid.
type Option func(*choices) error

// New names a queue: 1 – 512 bytes, without NUL and without the separator.
// A Client or System with a Prefix puts it before the name.
func New[T any](name string, opts ...Option) Queue[T] {
	chosen := choices{Settings: Settings{Keys: wakebelltype.QueueKeys{Name: name}}}
	q := Queue[T]{codec: codec.For[T]()}
	var errs []error
	for i, opt := range opts {
		if opt == nil {
			errs = append(errs, argument.Invalid("option", "number %d is nil", i))
			continue
		}
		errs = append(errs, opt(&chosen))
	}
	if chosen.key != nil {
		key, ok := chosen.key.(func(T) string)
		if !ok {
			errs = append(errs, argument.Invalid("DeduplicateBy", "a %T is not for bodies of %T", chosen.key, *new(T)))
		}
		q.key = key
	}
	q.set, q.err = chosen.Settings, errors.Join(errs...)
	return q
}

// Name returns the name without any prefix.
func (q Queue[T]) Name() string { return q.set.Keys.Name }

// Under returns the queue with prefix before its name, as wakebell.Group handles it.
func (q Queue[T]) Under(prefix string) Queue[T] {
	q.set.Keys.Name = prefix + q.set.Keys.Name
	return q
}

// Keys returns the keys of the queue, which the methods of a Client take.
func (q Queue[T]) Keys() wakebelltype.QueueKeys { return q.set.Keys }

// Settings returns the options of the queue, and the error of a wrong one.
func (q Queue[T]) Settings() (Settings, error) { return q.set, q.err }

// DeduplicateBy suppresses a message if one with the same key, as fn returns it,
// was published within the DeduplicationWindow. An empty key suppresses nothing.
func DeduplicateBy[T any](fn func(T) string) Option {
	return func(s *choices) error {
		if fn == nil {
			return argument.Invalid("DeduplicateBy", "nil")
		}
		s.key = fn
		return nil
	}
}

// DeduplicationWindow is how long a deduplication key suppresses further messages
// of the same key, 1 ms to 100 years; default 1 h.
func DeduplicationWindow(d time.Duration) Option {
	return func(s *choices) error {
		s.DeduplicationWindow = d
		return argument.Within("DeduplicationWindow", d, time.Millisecond, queuestore.MaxWindow)
	}
}

// WhenFull says what a publish does when as many messages wait as PendingCap
// allows.
type WhenFull uint8

const (
	// FullFails: it fails with ErrFull.
	FullFails WhenFull = iota
	// FullWaits: it waits for room, until its context ends.
	FullWaits
	// FullDropsOldest: the oldest messages are deleted, for good, at most 250 more in
	// a round trip than it publishes, which are at most 250. Their deduplication keys are freed, if they
	// were published with FullDropsOldest or FreeKeyOnFailure.
	FullDropsOldest
)

// PendingCap limits how many messages wait, 1 to 1,000,000,000; default: no limit.
// It applies to the publishers that set it.
func PendingCap(n int, when WhenFull) Option {
	return func(s *choices) error {
		s.PendingCap, s.WhenFull = n, when
		if n == 0 {
			return argument.Invalid("PendingCap", "0, want at least 1")
		}
		return s.validateCap()
	}
}

// FreeKeyOnFailure releases the deduplication key of a message that finally fails
// (it is rejected, or was tried too often), so that it can be published again at
// once. Publishers and handlers must both set it; Redis then keeps a small key
// beside each message. A key that a newer message holds stays.
func FreeKeyOnFailure() Option {
	return func(s *choices) error {
		s.FreeKeyOnFailure = true
		return nil
	}
}

// KeySeparator stands between a queue's name and what a key is for, in all keys;
// default "::".
func KeySeparator(separator string) Option {
	return func(s *choices) error {
		s.Keys.Separator = separator
		if separator == "" {
			return argument.Invalid("KeySeparator", "empty; leave it out for ::")
		}
		return nil
	}
}

// DeadLetterKey is the key of the list of dead letters, which in Python each
// consumer names for itself; default: the name, the separator and "dlq".
func DeadLetterKey(key string) Option {
	return func(s *choices) error {
		s.Keys.DeadLetters = key
		if key == "" {
			return argument.Invalid("DeadLetterKey", "empty")
		}
		return nil
	}
}

// PublishOption says how one message is published.
type PublishOption func(*publishChoices) error

// publishChoices are what options of one message set.
type publishChoices struct {
	key   string
	keyed bool // by an option
}

// DeduplicationKey is the message's deduplication key in place of that of
// DeduplicateBy; empty: none.
func DeduplicationKey(key string) PublishOption {
	return func(p *publishChoices) error {
		p.key, p.keyed = key, true
		return nil
	}
}

// Draft is a message that is not yet published. Queue.Draft makes it. Publishing
// the same drafts again is a retry: the messages are published once.
type Draft struct {
	Queue   Settings
	Payload []byte
	Key     string // of deduplication; empty: none

	// Headers reach the handlers of Wakebell. A ScheduleMiddleware and the span of
	// the call add to them.
	Headers []wakebelltype.Header

	// Tail are the last 20 hexadecimal digits of the message's id. They tell a
	// retry from another message. Empty: each publish makes a new message.
	Tail string

	// Err is the error of an option, or of the body. Publish returns it.
	Err error
}

// Draft makes a message for Client.Publish, which returns the error of a wrong
// option or body.
func (q Queue[T]) Draft(body T, opts ...PublishOption) Draft {
	d := Draft{Queue: q.set, Err: q.err}
	var chosen publishChoices
	for i, opt := range opts {
		if opt == nil {
			d.Err = errors.Join(d.Err, argument.Invalid("option", "number %d is nil", i))
			continue
		}
		d.Err = errors.Join(d.Err, opt(&chosen))
	}
	raw, _, err := q.codec.Encode(body)
	if err != nil {
		d.Err = errors.Join(d.Err, fmt.Errorf("%w: body: %w", wakebelltype.ErrInvalid, err))
	}
	d.Payload, d.Key = raw, chosen.key
	if !chosen.keyed && q.key != nil && d.Err == nil {
		d.Key = q.key(body)
	}
	message := queuestore.NewMessage(d.Payload, d.Key)
	d.Tail = message.Tail()
	return d
}

// Publish publishes a message, unless a message with the same deduplication key was
// published within the window; then fresh is false. If PendingCap is set with
// FullWaits, Publish waits for room.
//
// The retries within one call publish the message once. If you call Publish again
// after an error, a message without a deduplication key may be published twice. To
// prevent this, make a Draft and pass it to Client.Publish in each try: a try
// within a minute of the first returns the result of the first. Errors: ErrInvalid,
// ErrFull, ErrMemoryFull, ErrUnavailable.
func (q Queue[T]) Publish(ctx context.Context, c Publisher, body T, opts ...PublishOption) (fresh bool, err error) {
	if c == nil {
		return false, argument.Invalid("client", "nil")
	}
	published, err := c.Publish(ctx, q.Draft(body, opts...))
	if err != nil {
		return false, err
	}
	return published[0].Fresh, nil
}

// PublishAll publishes messages in their order and returns a result for each. Its
// guarantees and errors are those of Client.Publish.
func (q Queue[T]) PublishAll(ctx context.Context, c Publisher, bodies ...T) ([]wakebelltype.QueuePublished, error) {
	if c == nil {
		return nil, argument.Invalid("client", "nil")
	}
	drafts := make([]Draft, len(bodies))
	for i, body := range bodies {
		drafts[i] = q.Draft(body)
	}
	return c.Publish(ctx, drafts...)
}

// Read reads the body of a forwarded message.
func (q Queue[T]) Read(l *messages.Lease) (T, error) {
	body, err := q.codec.Decode(l.GetBody(), l.GetContentType())
	if err != nil {
		return body, fmt.Errorf("%w: %w", codec.ErrUnreadable, err)
	}
	return body, nil
}
