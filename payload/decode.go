package payload

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/wakebelltype"
)

// scheduleHeader is the header of a run with the name of its recurring schedule.
const scheduleHeader = "wakebell-schedule"

// Encoded is a body as it is stored.
type Encoded struct {
	// Kind is OutgoingMessage for a message of a queue. Otherwise the body is that of a
	// timer, a run of a recurring schedule, or a reminder, and OutgoingRecurring requires
	// a body of the schedule that the header wakebell-schedule names.
	Kind        wakebelltype.OutgoingKind
	Topic       string // the topic or queue, without the prefix of the client
	ID          string // of the timer
	Headers     []wakebelltype.Header
	Body        []byte
	ContentType string
}

// Decoded is a body as it was before Encode.
type Decoded struct {
	Body        []byte
	ContentType string
	Headers     []wakebelltype.Header // without the mark

	// InStore says that the body is in the store of ClaimCheck for this timer or message
	// alone. Discard deletes it.
	InStore bool

	discard func(context.Context) error
}

// Discard deletes the body from the store of ClaimCheck, if InStore. Call it when the
// timer is settled and will not be delivered again. Pollers do so after an ack.
func (d Decoded) Discard(ctx context.Context) error {
	if d.discard == nil {
		return nil
	}
	return d.discard(ctx)
}

// Decode returns the body that Encode was given. A body that is not marked is returned as
// it is. The result may share memory with the argument. Errors wrap ErrCorrupt,
// ErrUnknownKey, ErrUnknownCodec, or are those of the codec.
func (c *Chain) Decode(ctx context.Context, e Encoded) (Decoded, error) {
	plain := Decoded{Body: e.Body, ContentType: e.ContentType, Headers: e.Headers}
	if c == nil {
		return plain, nil
	}
	m, body, found, err := read(e.Headers, e.Body, e.Kind)
	if err != nil {
		return Decoded{}, err
	}
	if c.RequireEncryption && !m.encrypted() && slices.ContainsFunc(c.writing(e.Topic), isEncryption) {
		return Decoded{}, fmt.Errorf("%w: it is not encrypted, and RequireEncryption is set", ErrCorrupt)
	}
	if !found {
		return plain, nil
	}
	item, err := m.item(e)
	if err != nil {
		return Decoded{}, err
	}
	if m.kind != wakebelltype.OutgoingMessage {
		plain.ContentType = m.contentType
		plain.Headers = Unmark(e.Headers)
	}
	steps := m.steps
	for i, s := range slices.Backward(steps) {
		codec := c.reading(e.Topic, s.name)
		if codec == nil {
			return Decoded{}, fmt.Errorf("%w %s: add it to Payloads", ErrUnknownCodec, s.name)
		}
		m.steps = steps[:i]
		item.Before = m.String()
		if body, err = codec.Decode(ctx, item, s.step, body, c.limit()+overhead); err != nil {
			return Decoded{}, fmt.Errorf("codec %s: %w", s.name, err)
		}
		if store, ok := codec.(*claimCheck); ok {
			plain.InStore, plain.discard = true, func(ctx context.Context) error { return store.delete(ctx, s.step) }
		}
	}
	if len(body) > c.limit() {
		return Decoded{}, tooLarge(c.limit())
	}
	plain.Body = body
	return plain, nil
}

// Reference returns what a stored body has in the store of ClaimCheck, without reading it: a
// Decoded with InStore and Discard alone. It is for a body that is replaced.
func (c *Chain) Reference(e Encoded) Decoded {
	if c == nil {
		return Decoded{}
	}
	m, _, found, err := read(e.Headers, e.Body, e.Kind)
	if !found || err != nil {
		return Decoded{}
	}
	for _, s := range m.steps {
		if store, ok := c.reading(e.Topic, s.name).(*claimCheck); ok {
			return Decoded{InStore: true, discard: func(ctx context.Context) error { return store.delete(ctx, s.step) }}
		}
	}
	return Decoded{}
}

// overhead is what the built-in codecs add to a body at most: a body at the limit that
// was encrypted is larger than the limit until it is decrypted.
const overhead = 1 << 10

func tooLarge(limit int) error {
	return fmt.Errorf("%w: its decoded form exceeds the limit of %d bytes", ErrCorrupt, limit)
}

// item returns the Item that the codecs of a stored body got. A body of a recurring
// schedule is that of its runs, whose ids begin with the name of the schedule, and not of
// other timers.
func (m *mark) item(e Encoded) (Item, error) {
	of := Item{Kind: m.kind, Topic: e.Topic}
	switch m.kind {
	case wakebelltype.OutgoingTimer, wakebelltype.OutgoingReminder:
		if e.Kind == wakebelltype.OutgoingRecurring {
			return of, fmt.Errorf("%w: it is the body of a %s, not of a recurring schedule", ErrCorrupt, m.kind)
		}
		of.ID = e.ID
	case wakebelltype.OutgoingRecurring:
		for _, h := range e.Headers {
			if h.Key == scheduleHeader {
				of.ID = h.Value
			}
		}
		if e.Kind != wakebelltype.OutgoingRecurring && !runOf(e.ID, of.ID) {
			return of, fmt.Errorf("%w: it is the body of the recurring schedule %s, and the timer is not one of its runs", ErrCorrupt, argument.Quote(of.ID))
		}
	case wakebelltype.OutgoingMessage:
	}
	return of, nil
}

// runOf reports whether a timer has the id of a run: the name of the schedule with the
// prefix of its client, which is not known here, or the SHA-1 of a long one in hexadecimal
// digits; then an @ and the instant.
func runOf(id, schedule string) bool {
	at := strings.LastIndexByte(id, '@')
	if at < 0 {
		return false
	}
	if _, err := time.Parse(time.RFC3339Nano, id[at+1:]); err != nil {
		return false
	}
	sum, err := hex.DecodeString(id[:at])
	return strings.HasSuffix(id[:at], schedule) || err == nil && len(sum) == sha1Size
}

const sha1Size = 20
