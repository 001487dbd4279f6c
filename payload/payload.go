package payload

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/wakebelltype"
)

// DefaultLimit is the default of Chain.Limit outside of a client of timers, in bytes.
const DefaultLimit = 1 << 20

var (
	// ErrCorrupt is wrapped by the error for a body that no retry can decode: it is
	// truncated, was changed or moved to another timer, exceeds Chain.Limit, or its mark
	// is malformed. Handlers do not receive it; it becomes a dead letter at once.
	ErrCorrupt = errors.New("encoded body is corrupt")

	// ErrUnknownKey is wrapped by the error for a body that is encrypted with a key
	// that this process does not have. The delivery is retried as after any error,
	// because the key may be deployed later than the first body that needs it.
	ErrUnknownKey = errors.New("unknown key")

	// ErrUnknownCodec is wrapped by the error for a body that was encoded by a codec
	// that the Chain does not have. The delivery is retried, as with ErrUnknownKey.
	ErrUnknownCodec = errors.New("unknown codec")
)

// Item names what a body belongs to. A codec may bind the encoded body to it.
type Item struct {
	Kind  wakebelltype.OutgoingKind
	Topic string // the topic or queue, without the prefix of the client
	ID    string // of the timer or reminder, or the name of the schedule; empty for a message

	// Before describes the steps before this codec and the content type, in the form
	// of the mark. It is the same on both ways.
	Before string
}

// Step is what a codec did to a body.
type Step struct {
	// Params are stored with the body, unencrypted, and passed to Decode: up to 8, with
	// keys of 1 to 32 bytes of a-z, 0-9 and -, and values of up to 1,024 bytes.
	Params map[string]string

	// Skipped says that the codec left the body as it is; nothing is stored then.
	Skipped bool
}

// Codec is a step of a Chain. Its methods are called from many goroutines.
type Codec interface {
	// Name identifies the codec in stored bodies: 1 to 32 bytes of a-z, 0-9 and -. It
	// must not change while bodies wait.
	Name() string

	// Encode returns the encoded body. It must not change body, which may be returned.
	Encode(ctx context.Context, of Item, body []byte) ([]byte, Step, error)

	// Decode reverses Encode. It returns an error that wraps ErrCorrupt if no retry can
	// help, and must not allocate more than limit bytes for the result.
	Decode(ctx context.Context, of Item, s Step, body []byte, limit int) ([]byte, error)
}

// Chain encodes and decodes bodies. A nil Chain changes nothing. It must not be changed
// after its first use, and may be used by many clients.
type Chain struct {
	// Codecs encode each body in this order, and decode it in reverse: compress,
	// then encrypt, then store. At most 8.
	Codecs []Codec

	// Topics replace Codecs for the bodies that are written to a topic or queue, named
	// without prefix; an empty list writes them plainly. What is read may have been
	// written with any codec of the Chain.
	Topics map[string][]Codec

	// Limit bounds a body before it is encoded and after it is decoded, in bytes. It
	// may exceed PayloadLimit, which bounds what is stored in Redis. Default:
	// PayloadLimit of the client, or DefaultLimit.
	Limit int

	// RequireEncryption refuses bodies that were not encrypted, with ErrCorrupt, on
	// topics and queues that are written with Encrypt. Set it when no plain body waits any more.
	// Without it, a process that can write to Redis can have a plain body delivered.
	RequireEncryption bool
}

// Validate reports all that is wrong with the Chain. Errors wrap wakebell.ErrInvalid.
func (c *Chain) Validate() error {
	if c == nil {
		return nil
	}
	errs := []error{c.validate("Payloads.Codecs", c.Codecs)}
	for topic, codecs := range c.Topics {
		errs = append(errs, c.validate("Payloads.Topics "+argument.Quote(topic), codecs))
	}
	if c.Limit < 0 {
		errs = append(errs, argument.Invalid("Payloads.Limit", "%d, want 0 or more bytes", c.Limit))
	}
	return errors.Join(errs...)
}

func (c *Chain) validate(field string, codecs []Codec) error {
	if len(codecs) > maxSteps {
		return argument.Invalid(field, "%d codecs, at most %d", len(codecs), maxSteps)
	}
	var errs []error
	for i, codec := range codecs {
		if codec == nil {
			errs = append(errs, argument.Invalid(field, "number %d is nil", i))
			continue
		}
		if !token(codec.Name(), maxName) {
			errs = append(errs, argument.Invalid(field, "codec name %s, want 1 to %d bytes of a-z, 0-9 and -", argument.Quote(codec.Name()), maxName))
		}
		if slices.ContainsFunc(codecs[:i], func(o Codec) bool { return o != nil && o.Name() == codec.Name() }) {
			errs = append(errs, argument.Invalid(field, "codec %s is listed twice", codec.Name()))
		}
		if codec.Name() == claimName && i < len(codecs)-1 {
			errs = append(errs, argument.Invalid(field, "codec %s stores what it is given outside of Redis, want it last", claimName))
		}
		if own, ok := codec.(interface{ validate() error }); ok {
			errs = append(errs, own.validate())
		}
	}
	return errors.Join(errs...)
}

// WithLimit returns a copy of the Chain with that Limit, unless it has one.
func (c *Chain) WithLimit(limit int) *Chain {
	if c == nil || c.Limit > 0 {
		return c
	}
	limited := *c
	limited.Limit = limit
	return &limited
}

func (c *Chain) limit() int {
	if c.Limit > 0 {
		return c.Limit
	}
	return DefaultLimit
}

// writing returns the codecs for the bodies of a topic.
func (c *Chain) writing(topic string) []Codec {
	if codecs, ok := c.Topics[topic]; ok {
		return codecs
	}
	return c.Codecs
}

// reading returns the codec of that name, of the topic or of any.
func (c *Chain) reading(topic, name string) Codec {
	named := func(o Codec) bool { return o.Name() == name }
	for _, codecs := range [][]Codec{c.Topics[topic], c.Codecs} {
		if i := slices.IndexFunc(codecs, named); i >= 0 {
			return codecs[i]
		}
	}
	for _, codecs := range c.Topics {
		if i := slices.IndexFunc(codecs, named); i >= 0 {
			return codecs[i]
		}
	}
	return nil
}

// Encode is a schedule middleware that encodes bodies. It leaves a body that is marked
// as encoded as it is. A mark beside another content type than ContentType is that of an
// earlier body, as when the headers of a stored timer are used for a new one: it is
// removed, and the body is encoded. It must be the last middleware.
func (c *Chain) Encode(next wakebelltype.ScheduleFunc) wakebelltype.ScheduleFunc {
	if c == nil {
		return next
	}
	return func(ctx context.Context, out []*wakebelltype.Outgoing) error {
		for _, o := range out {
			if err := c.encode(ctx, o); err != nil {
				return fmt.Errorf("encode the body of %s %s: %w", o.Kind, argument.Quote(o.ID), err)
			}
		}
		return next(ctx, out)
	}
}

func (c *Chain) encode(ctx context.Context, o *wakebelltype.Outgoing) error {
	if o.Kind != wakebelltype.OutgoingMessage && Marked(o.Headers, nil) {
		if o.ContentType == ContentType {
			return nil
		}
		o.Headers = Unmark(o.Headers)
	}
	if len(o.Body) > c.limit() {
		return argument.Invalid("body", "%d bytes before it is encoded, the limit is %d", len(o.Body), c.limit())
	}
	m, id, body := mark{kind: o.Kind, contentType: o.ContentType}, o.ID, o.Body
	if o.Kind == wakebelltype.OutgoingMessage { // it gets its id later, and dead letters have no content type
		m.contentType, id = "", ""
	}
	for _, codec := range c.writing(o.Topic) {
		of := Item{Kind: o.Kind, Topic: o.Topic, ID: id, Before: m.String()}
		encoded, step, err := codec.Encode(ctx, of, body)
		if err != nil {
			return fmt.Errorf("codec %s: %w", codec.Name(), err)
		}
		if step.Skipped {
			continue
		}
		if err := checkStep(codec.Name(), step); err != nil {
			return err
		}
		m.steps, body = append(m.steps, namedStep{codec.Name(), step}), encoded
	}
	if size := len(m.String()); size > maxMark {
		return argument.Invalid("Payloads", "the mark of the body, with its content type, has %d bytes, at most %d", size, maxMark)
	}
	switch {
	case o.Kind == wakebelltype.OutgoingMessage: // its headers do not reach dead letters
		if len(m.steps) > 0 || framed(body) {
			o.Body = m.frame(body)
		}
	case len(m.steps) > 0:
		o.Body, o.ContentType = body, ContentType
		o.SetHeader(Header, m.String())
	}
	return nil
}
