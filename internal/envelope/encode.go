package envelope

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/wakebell/wakebell/internal/text"
)

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
	for _, field := range [...]Header{
		{Key: HeaderCorrelationID, Value: e.CorrelationID}, {Key: HeaderContentType, Value: e.ContentType}, {Key: HeaderReplyTo, Value: e.ReplyTo},
	} {
		if field.Value != "" {
			headers = headers.with(field.Key, field.Value)
		}
	}
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

// CheckHeader reports why a user may not set a header: the key is empty or
// reserved for a field of the envelope, or a part has over MaxHeaderBytes.
func CheckHeader(key, value string) error {
	switch {
	case key == "":
		return errors.New("the key is empty")
	case len(key) > MaxHeaderBytes:
		return fmt.Errorf("the key has %d bytes, at most %d", len(key), MaxHeaderBytes)
	case len(value) > MaxHeaderBytes:
		return fmt.Errorf("the value has %d bytes, at most %d", len(value), MaxHeaderBytes)
	case key == HeaderCorrelationID || key == HeaderContentType || key == HeaderReplyTo:
		return errors.New("the key is reserved for a field of the envelope")
	}
	return nil
}

// scanLimit is the number of headers up to which a linear search is cheaper than
// a map. It is also the size of AppendTo's buffer on the stack.
const scanLimit = 16

// headerSet is a list in which every key occurs once, with the last value at the
// place of the first, as in a Python dict.
type headerSet struct {
	list []Header

	// index maps keys to indexes of list once list is longer than scanLimit, so
	// that 65,535 headers do not take quadratic time; nil before.
	index map[string]int
}

// with returns the set with a header added or replaced. As with append, the
// receiver must not be used afterwards. (A pointer receiver would move AppendTo's
// buffer to the heap.)
func (s headerSet) with(key, value string) headerSet {
	at, found := s.index[key]
	if s.index == nil {
		at = slices.IndexFunc(s.list, func(h Header) bool { return h.Key == key })
		found = at >= 0
	}
	if found {
		s.list[at].Value = value
		return s
	}
	s.list = append(s.list, Header{Key: key, Value: value})
	switch {
	case s.index != nil:
		s.index[key] = len(s.list) - 1
	case len(s.list) > scanLimit:
		s.index = make(map[string]int, 2*len(s.list))
		for i, h := range s.list {
			s.index[h.Key] = i
		}
	}
	return s
}
