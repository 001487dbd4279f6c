package payload

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	// Header marks the encoded body of a timer. Its value names the codecs in the order
	// in which they were applied, as in
	//
	//	1;for=timer;type=application%2Fjson gzip;size=20480 aes-256-gcm;key=k1
	Header = "wakebell-payload"

	// ContentType is the content type of the encoded body of a timer. That of the body
	// is in the mark.
	ContentType = "application/x-wakebell-payload"
)

// Messages of queues are marked by a frame around the body: magic, the length of the mark
// in two bytes, big-endian, the mark, and the encoded body.
const magic = "\x00wakebell-payload\x01"

const (
	version   = "1"
	maxMark   = 16 << 10 // bytes of a mark
	maxSteps  = 8
	maxParams = 8
	maxName   = 32 // bytes of the name of a codec or parameter
	maxValue  = 1 << 10
)

// mark says how a body is encoded.
type mark struct {
	kind        wakebelltype.OutgoingKind
	contentType string // of the decoded body; messages have none
	steps       []namedStep
}

type namedStep struct {
	name string
	step Step
}

// String returns the mark as it is stored. Equal marks have equal strings.
func (m *mark) String() string {
	text := version + ";for=" + url.QueryEscape(string(m.kind))
	if m.contentType != "" {
		text += ";type=" + url.QueryEscape(m.contentType)
	}
	for _, s := range m.steps {
		text += " " + s.name
		for _, key := range slices.Sorted(maps.Keys(s.step.Params)) {
			text += ";" + key + "=" + url.QueryEscape(s.step.Params[key])
		}
	}
	return text
}

// frame puts the mark before the encoded body of a message.
func (m *mark) frame(body []byte) []byte {
	text := m.String()
	out := make([]byte, 0, len(magic)+2+len(text)+len(body))
	out = append(out, magic...)
	out = binary.BigEndian.AppendUint16(out, uint16(len(text))) //nolint:gosec // checkStep bounds it
	return append(append(out, text...), body...)
}

func framed(body []byte) bool { return bytes.HasPrefix(body, []byte(magic)) }

// Marked reports whether the stored body of a timer was encoded by a Chain. A message of a
// queue has no headers, and its mark is in the body: pass nil headers for it. The body of
// a timer is not looked at, so pass nil for it.
func Marked(headers []wakebelltype.Header, body []byte) bool {
	return framed(body) || slices.ContainsFunc(headers, isMark)
}

func isMark(h wakebelltype.Header) bool { return h.Key == Header }

// Unmark returns the headers without a mark. The argument is not changed.
func Unmark(headers []wakebelltype.Header) []wakebelltype.Header {
	return slices.DeleteFunc(slices.Clone(headers), isMark)
}

// Bound reports whether a stored body was encrypted for its topic and id, so that it cannot
// be decoded elsewhere.
func Bound(headers []wakebelltype.Header, body []byte) bool {
	m, _, found, err := read(headers, body, placeOf(headers))
	return found && err == nil && m.encrypted()
}

// placeOf guesses where a body is stored: that of a timer has its mark in the headers.
func placeOf(headers []wakebelltype.Header) wakebelltype.OutgoingKind {
	if slices.ContainsFunc(headers, isMark) {
		return wakebelltype.OutgoingTimer
	}
	return wakebelltype.OutgoingMessage
}

// read returns the mark of a body that is stored as a timer or as a message, and the body
// without its frame. The mark must be that of what is stored there: the headers of a
// message and the bytes of a timer are not looked at.
func read(headers []wakebelltype.Header, body []byte, place wakebelltype.OutgoingKind) (m mark, inner []byte, found bool, err error) {
	if place != wakebelltype.OutgoingMessage {
		i := slices.IndexFunc(headers, isMark)
		if i < 0 {
			return m, body, false, nil
		}
		if m, err = parse(headers[i].Value); err == nil && m.kind == wakebelltype.OutgoingMessage {
			err = malformed("for=%s in a header", m.kind)
		}
		return m, body, true, err
	}
	if !framed(body) {
		return m, body, false, nil
	}
	rest := body[len(magic):]
	if len(rest) < 2 || len(rest)-2 < int(binary.BigEndian.Uint16(rest)) {
		return m, nil, true, fmt.Errorf("%w: its mark is truncated", ErrCorrupt)
	}
	size := int(binary.BigEndian.Uint16(rest))
	m, err = parse(string(rest[2 : 2+size]))
	if err == nil && m.kind != wakebelltype.OutgoingMessage {
		err = malformed("for=%s in a frame", m.kind)
	}
	return m, rest[2+size:], true, err
}

// parse reads a mark. Every mark that it accepts is written again as it was.
func parse(text string) (m mark, err error) {
	if len(text) > maxMark {
		return m, malformed("%d bytes, at most %d", len(text), maxMark)
	}
	parts := strings.Split(text, " ")
	if len(parts) > maxSteps+1 {
		return m, malformed("%d codecs, at most %d", len(parts)-1, maxSteps)
	}
	for i, part := range parts {
		name, params, err := parseStep(part)
		switch {
		case err != nil:
			return m, err
		case i > 0:
			m.steps = append(m.steps, namedStep{name, Step{Params: params}})
			continue
		case name != version:
			return m, fmt.Errorf("%w: version %s of the mark, want %s", ErrUnknownCodec, name, version)
		}
		m.kind, m.contentType = wakebelltype.OutgoingKind(params["for"]), params["type"]
		if !slices.Contains(kinds, m.kind) {
			return m, malformed("for=%s", m.kind)
		}
	}
	if m.String() != text {
		return m, malformed("it is not in its canonical form")
	}
	return m, nil
}

var kinds = []wakebelltype.OutgoingKind{
	wakebelltype.OutgoingTimer, wakebelltype.OutgoingMessage, wakebelltype.OutgoingRecurring, wakebelltype.OutgoingReminder,
}

func parseStep(text string) (name string, params map[string]string, err error) {
	fields := strings.Split(text, ";")
	if len(fields) > maxParams+1 {
		return "", nil, malformed("%d parameters, at most %d", len(fields)-1, maxParams)
	}
	if name = fields[0]; !token(name, maxName) {
		return "", nil, malformed("codec name %.40q", name)
	}
	for _, field := range fields[1:] {
		key, escaped, _ := strings.Cut(field, "=")
		value, err := url.QueryUnescape(escaped)
		if err != nil || !token(key, maxName) {
			return "", nil, malformed("parameter %.40q", field)
		}
		if params == nil {
			params = map[string]string{}
		}
		params[key] = value
	}
	return name, params, nil
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: malformed mark: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}

func token(text string, most int) bool {
	return text != "" && len(text) <= most && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// checkStep rejects what a codec must not store.
func checkStep(name string, s Step) error {
	if len(s.Params) > maxParams {
		return fmt.Errorf("codec %s: %d parameters, at most %d", name, len(s.Params), maxParams)
	}
	for key, value := range s.Params {
		if !token(key, maxName) || len(value) > maxValue {
			return fmt.Errorf("codec %s: parameter %.40q with %d bytes, want a name of a-z, 0-9 and -, and at most %d bytes", name, key, len(value), maxValue)
		}
	}
	return nil
}

func (m *mark) encrypted() bool {
	return slices.ContainsFunc(m.steps, func(s namedStep) bool { return s.name == encryptionName })
}

// Description says how a stored body is encoded, as "gzip, encrypted with key k1, 312
// bytes". It is empty for a body that is not marked.
func Description(headers []wakebelltype.Header, body []byte) string {
	m, inner, found, err := read(headers, body, placeOf(headers))
	switch {
	case !found:
		return ""
	case err != nil:
		return err.Error()
	}
	var parts []string
	for _, s := range m.steps {
		switch s.name {
		case encryptionName:
			parts = append(parts, "encrypted with key "+s.step.Params["key"])
		case claimName:
			parts = append(parts, s.step.Params["size"]+" bytes in the store as "+s.step.Params["ref"])
		default:
			parts = append(parts, s.name)
		}
	}
	return strings.Join(append(parts, strconv.Itoa(len(inner))+" bytes"), ", ")
}
