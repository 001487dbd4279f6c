package payload

import (
	"context"
	"fmt"
	"slices"

	"github.com/wakebell/wakebell/wakebelltype"
)

// scheduleHeader is the header of a run with the name of its recurring schedule.
const scheduleHeader = "wakebell-schedule"

// Encoded is a body as it is stored.
type Encoded struct {
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
	m, body, found, err := read(e.Headers, e.Body)
	if err != nil {
		return Decoded{}, err
	}
	if c.RequireEncryption && !m.encrypted() && slices.ContainsFunc(c.writing(e.Topic), isEncryption) {
		return Decoded{}, fmt.Errorf("%w: it is not encrypted, and RequireEncryption is set", ErrCorrupt)
	}
	if !found {
		return plain, nil
	}
	item := m.item(e)
	if m.kind != wakebelltype.OutgoingMessage {
		plain.ContentType = m.contentType
		plain.Headers = slices.DeleteFunc(slices.Clone(e.Headers), func(h wakebelltype.Header) bool { return h.Key == Header })
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

// overhead is what the built-in codecs add to a body at most: a body at the limit that
// was encrypted is larger than the limit until it is decrypted.
const overhead = 1 << 10

func tooLarge(limit int) error {
	return fmt.Errorf("%w: its decoded form exceeds the limit of %d bytes", ErrCorrupt, limit)
}

// item returns the Item that the codecs of a stored body got.
func (m *mark) item(e Encoded) Item {
	of := Item{Kind: m.kind, Topic: e.Topic}
	switch m.kind {
	case wakebelltype.OutgoingTimer, wakebelltype.OutgoingReminder:
		of.ID = e.ID
	case wakebelltype.OutgoingRecurring:
		for _, h := range e.Headers {
			if h.Key == scheduleHeader {
				of.ID = h.Value
			}
		}
	case wakebelltype.OutgoingMessage:
	}
	return of
}
