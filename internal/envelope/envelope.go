// Package envelope encodes and decodes the payload of a timer, its body and
// headers, in the format of faststream-redis-timers 0.2 – 0.4: a Python process
// and a Go process on the same keys read each other's timers.
//
// # Layout
//
// All numbers are big-endian:
//
//	89 42 49 4E 0D 0A 1A 0A      magic
//	u16                          version, 1
//	u32                          where the headers start, 18
//	u32                          where the body starts
//	u16                          number of headers
//	{u16 length, key, u16 length, value} for each header
//	the body, up to the end
//
// Lengths count bytes. The peer writes the number of characters instead, which
// is wrong for anything but ASCII; Decode reads such envelopes too.
//
// # Headers
//
// Correlation id, content type and reply-to are headers on the wire and fields
// here. Names are compared exactly, case included. A name occurs once: as in a
// Python dict, a later value replaces an earlier one in its place.
package envelope

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/wakebelltype"
)

// The names of the headers that have a field in Envelope.
const (
	HeaderCorrelationID = "correlation_id"
	HeaderContentType   = "content-type"
	HeaderReplyTo       = "reply_to"
)

const (
	// MaxHeaderBytes bounds the key and the value of a header, each.
	MaxHeaderBytes = math.MaxUint16
	// MaxHeaders bounds the number of headers, those with a field included.
	MaxHeaders = math.MaxUint16
	// MaxBytes bounds an encoded envelope.
	MaxBytes = math.MaxUint32
)

const (
	magic      = "\x89BIN\r\n\x1a\n"
	version    = 1
	fixedBytes = len(magic) + 2 + 4 + 4 // where the headers start
	countBytes = 2
	shownKey   = 64 // bytes of a key in an error
)

var (
	// ErrTooLarge is wrapped by Encode's errors. The error names the part that
	// does not fit the format, and its bound.
	ErrTooLarge = errors.New("envelope too large")

	// ErrMalformed is wrapped by Decode's errors: the payload begins as an
	// envelope but is not a valid one.
	ErrMalformed = errors.New("malformed envelope")
)

// Header is a user header. Any bytes may be written; the Python peer reads only
// UTF-8.
type Header = wakebelltype.Header

// Envelope is a decoded payload of a timer.
type Envelope struct {
	// CorrelationID, ContentType and ReplyTo are absent when empty.
	CorrelationID string
	ContentType   string
	ReplyTo       string

	// Headers are the user headers, in order. Decode returns no duplicate names
	// and no name that has a field of its own; Encode merges them.
	Headers []Header

	Body []byte
}

// CorrelationOr returns the correlation id, or the timer's id if there is none,
// as the peer does. A caller that schedules a timer sets CorrelationID to the
// result before it encodes.
func (e Envelope) CorrelationOr(timerID string) string {
	if e.CorrelationID != "" {
		return e.CorrelationID
	}
	return timerID
}

// Encode returns the bytes of an envelope in a new slice, with one allocation
// (more for over 16 headers). Its errors wrap ErrTooLarge: a key or a value
// over MaxHeaderBytes, more than MaxHeaders headers, or over MaxBytes in all.
//
// The headers are written in this order: correlation id, content type, reply-to,
// each if not empty, then the user headers. A user header with one of those names
// replaces the value of the field in its place. If the field is empty, it is
// written at its place among the user headers.
func Encode(e Envelope) ([]byte, error) {
	return e.AppendTo(nil)
}

// AppendTo appends the bytes of the envelope to dst, which grows at most once.
// After an error it returns dst unchanged. See Encode.
func (e Envelope) AppendTo(dst []byte) ([]byte, error) {
	var buf [scanLimit]Header
	headers := headerSet{list: buf[:0]}
	headers = headers.withField(HeaderCorrelationID, e.CorrelationID)
	headers = headers.withField(HeaderContentType, e.ContentType)
	headers = headers.withField(HeaderReplyTo, e.ReplyTo)
	for _, h := range e.Headers {
		headers = headers.with(h.Key, h.Value)
	}

	dataStart, err := measure(headers.list, len(e.Body))
	if err != nil {
		return dst, err
	}

	if size := int(dataStart) + len(e.Body); cap(dst)-len(dst) < size {
		dst = append(make([]byte, 0, len(dst)+size), dst...)
	}
	dst = append(dst, magic...)
	dst = binary.BigEndian.AppendUint16(dst, version)
	dst = binary.BigEndian.AppendUint32(dst, uint32(fixedBytes))
	dst = binary.BigEndian.AppendUint32(dst, dataStart)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(headers.list)))
	for _, h := range headers.list {
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(h.Key)))
		dst = append(dst, h.Key...)
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(h.Value)))
		dst = append(dst, h.Value...)
	}
	return append(dst, e.Body...), nil
}

// measure checks all bounds and returns the offset of the body.
func measure(headers []Header, body int) (dataStart uint32, err error) {
	if len(headers) > MaxHeaders {
		return 0, fmt.Errorf("%w: %d headers, at most %d are possible", ErrTooLarge, len(headers), MaxHeaders)
	}
	size := uint64(fixedBytes + countBytes)
	for _, h := range headers {
		if len(h.Key) > MaxHeaderBytes {
			return 0, fmt.Errorf("%w: the key of header %q has %d bytes, at most %d are possible",
				ErrTooLarge, text.Clip(h.Key, shownKey), len(h.Key), MaxHeaderBytes)
		}
		if len(h.Value) > MaxHeaderBytes {
			return 0, fmt.Errorf("%w: the value of header %q has %d bytes, at most %d are possible",
				ErrTooLarge, text.Clip(h.Key, shownKey), len(h.Value), MaxHeaderBytes)
		}
		size += uint64(4 + len(h.Key) + len(h.Value))
	}
	if total := size + uint64(body); total > min(MaxBytes, math.MaxInt) {
		return 0, fmt.Errorf("%w: %d bytes of headers and %d of body, at most %d in all are possible",
			ErrTooLarge, size, body, min(MaxBytes, math.MaxInt))
	}
	return uint32(size), nil
}
