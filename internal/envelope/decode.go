package envelope

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// Decode decodes a payload. It tries these forms in the order of the Python peer:
//
//  1. legacy, {"b": hex, "ct": content type}
//  2. the envelope
//  3. legacy, {"data": text, "headers": object}
//  4. anything else: the whole payload is the body, without headers
//
// It always returns a usable Envelope and never panics. An error wraps
// ErrMalformed: the payload has the form of (1) or (2) but is inconsistent. The
// Envelope is then that of (4), as in the peer. Another version of the envelope
// is decoded as (4) without an error.
//
// The headers are copied, in one allocation (two with user headers). Body is a
// part of payload, not a copy, except in the legacy forms: neither may be
// modified while the other is in use.
func Decode(payload []byte) (Envelope, error) {
	if isCurrent(payload) {
		e, err := decodeCurrent(payload)
		if err != nil {
			return Envelope{Body: payload}, fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		return e, nil
	}
	e, ok, err := decodeLegacy(payload)
	if err != nil {
		return Envelope{Body: payload}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if !ok {
		return Envelope{Body: payload}, nil
	}
	return e, nil
}

// isCurrent reports whether payload starts as an envelope of this version.
func isCurrent(payload []byte) bool {
	const head = len(magic) + 2
	return len(payload) >= head &&
		string(payload[:len(magic)]) == magic &&
		binary.BigEndian.Uint16(payload[len(magic):]) == version
}

func decodeCurrent(payload []byte) (Envelope, error) {
	if len(payload) < fixedBytes+countBytes {
		return Envelope{}, fmt.Errorf("cut off after %d bytes", len(payload))
	}
	headersStart := uint64(binary.BigEndian.Uint32(payload[len(magic)+2:]))
	dataStart := uint64(binary.BigEndian.Uint32(payload[len(magic)+6:]))
	blockStart := headersStart + countBytes
	if headersStart < uint64(fixedBytes) || blockStart > dataStart || dataStart > uint64(len(payload)) {
		return Envelope{}, fmt.Errorf("headers at %d and body at %d of %d bytes", headersStart, dataStart, len(payload))
	}

	count := int(binary.BigEndian.Uint16(payload[headersStart:]))
	// Lengths are in bytes if they add up; otherwise they are the peer's character
	// counts. Both are checked before anything is allocated.
	block := payload[blockStart:dataStart]
	frame := inBytes
	if !fits(block, count, inBytes) {
		if !fits(block, count, inRunes) {
			return Envelope{}, fmt.Errorf("%d headers do not fill the %d bytes before the body", count, len(block))
		}
		frame = inRunes
	}

	text := string(block)
	var c collector
	for i := range count {
		var key, value string
		key, text = cut(text, frame)
		value, text = cut(text, frame)
		c.add(key, value, count-i)
	}
	return c.done(payload[dataStart:]), nil
}

// framing is the unit of the length that precedes a key or a value.
type framing uint8

const (
	inBytes framing = iota // as the format specifies
	inRunes                // as the peer writes
)

// fits reports whether count headers with this framing fill block exactly.
func fits(block []byte, count int, frame framing) bool {
	for range 2 * count {
		if len(block) < 2 {
			return false
		}
		length := int(binary.BigEndian.Uint16(block))
		block = block[2:]
		if frame == inRunes {
			length = runesSpan(block, length)
		}
		if length > len(block) {
			return false
		}
		block = block[length:]
	}
	return len(block) == 0
}

// runesSpan returns the number of bytes of the first n characters of b, or
// len(b)+1 if b has fewer characters. A byte that is not UTF-8 counts as one
// character, because the peer counts values of type bytes in bytes.
func runesSpan(b []byte, n int) int {
	span := 0
	for range n {
		if span == len(b) {
			return span + 1
		}
		_, size := utf8.DecodeRune(b[span:])
		span += size
	}
	return span
}

// cut splits the next key or value off a block that fits has accepted. The
// results share the memory of text.
func cut(text string, frame framing) (part, rest string) {
	length := int(text[0])<<8 | int(text[1])
	text = text[2:]
	if frame == inRunes {
		length = stringSpan(text, length)
	}
	return text[:length], text[length:]
}

// stringSpan is runesSpan for a string that is long enough.
func stringSpan(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// collector builds an Envelope from the headers of a payload.
type collector struct {
	envelope Envelope
	user     headerSet
}

// add adds the next header. remaining is the number of headers left, this one
// included; it sizes the list of user headers when the first one is added.
func (c *collector) add(key, value string, remaining int) {
	switch key {
	case HeaderCorrelationID:
		c.envelope.CorrelationID = value
	case HeaderContentType:
		c.envelope.ContentType = value
	case HeaderReplyTo:
		c.envelope.ReplyTo = value
	default:
		if c.user.list == nil {
			c.user.list = make([]Header, 0, remaining)
		}
		c.user = c.user.with(key, value)
	}
}

func (c *collector) done(body []byte) Envelope {
	c.envelope.Headers = c.user.list
	c.envelope.Body = body
	return c.envelope
}
