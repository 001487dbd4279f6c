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
	"errors"
	"math"

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
