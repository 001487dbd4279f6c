// Package queuemessage encodes and decodes the messages of redis-message-queue: a
// prefix, and JSON with an id and a payload. Redis finds a message by its stored
// bytes, so they are never decoded and encoded again.
package queuemessage

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/wakebell/wakebell/wakebelltype"
)

// Prefix begins an envelope. A value without it is a payload without an id.
const Prefix = "\x1eRMQ1:"

// ErrMalformed is wrapped by errors about a value that has the prefix but is not
// an envelope.
var ErrMalformed = errors.New("malformed stored message")

// Message is a decoded message.
type Message struct {
	ID      string // empty: it has no envelope
	Payload []byte
	// Headers are sorted by name. Only Wakebell writes them; redis-message-queue
	// ignores the field.
	Headers []wakebelltype.Header
}

// Decode decodes a stored message. Errors wrap [ErrMalformed].
func Decode(value string) (Message, error) {
	body, ok := strings.CutPrefix(value, Prefix)
	if !ok {
		return Message{Payload: []byte(value)}, nil
	}
	if id, text, ok := plain(body); ok {
		return Message{ID: id, Payload: []byte(text)}, nil
	}
	var e struct {
		ID      *string         `json:"id"`
		Payload *string         `json:"payload"`
		Hex     *string         `json:"payload_hex"`
		Headers json.RawMessage `json:"headers"`
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		return Message{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	switch {
	case e.ID == nil:
		return Message{}, fmt.Errorf("%w: no id", ErrMalformed)
	case (e.Payload == nil) == (e.Hex == nil):
		return Message{}, fmt.Errorf("%w: want a payload or a payload_hex", ErrMalformed)
	}
	m := Message{ID: *e.ID, Headers: headers(e.Headers)}
	if e.Payload != nil {
		m.Payload = []byte(*e.Payload)
		return m, nil
	}
	payload, err := hex.DecodeString(*e.Hex)
	if err != nil {
		return Message{}, fmt.Errorf("%w: payload_hex: %w", ErrMalformed, err)
	}
	m.Payload = payload
	return m, nil
}

// headers reads the field headers. What is not an object of strings was written by
// another program for a purpose of its own, and has no headers.
func headers(raw json.RawMessage) (all []wakebelltype.Header) {
	var m map[string]string
	if len(raw) == 0 || json.Unmarshal(raw, &m) != nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		all = append(all, wakebelltype.Header{Key: key, Value: m[key]})
	}
	return all
}

// plain decodes an envelope with a 32-digit id and no escapes, which is the common
// case, without a JSON parser.
func plain(body string) (id, payload string, ok bool) {
	const before, between, after, digits = `{"id":"`, `","payload":"`, `"}`, 32
	const from = len(before) + digits + len(between)
	if len(body) < from+len(after) || body[:len(before)] != before ||
		body[len(before)+digits:from] != between || body[len(body)-len(after):] != after {
		return "", "", false
	}
	id, payload = body[len(before):len(before)+digits], body[from:len(body)-len(after)]
	if strings.ContainsAny(id, `"\`) || strings.ContainsAny(payload, `"\`) || !printable(payload) {
		return "", "", false
	}
	return id, payload, true
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// Rest returns the part of an envelope behind the id: the payload as a JSON string
// in ASCII, or payload_hex if the payload is not UTF-8, and the headers if there are
// any.
func Rest(payload []byte, headers []wakebelltype.Header) string {
	var b strings.Builder
	b.Grow(len(payload) + 16)
	if utf8.Valid(payload) {
		b.WriteString(`"payload":`)
		quote(&b, payload)
	} else {
		b.WriteString(`"payload_hex":"` + hex.EncodeToString(payload) + `"`)
	}
	for i, h := range headers {
		b.WriteString([]string{`,"headers":{`, `,`}[min(i, 1)])
		quote(&b, []byte(h.Key))
		b.WriteByte(':')
		quote(&b, []byte(h.Value))
	}
	if len(headers) > 0 {
		b.WriteByte('}')
	}
	b.WriteByte('}')
	return b.String()
}

// quote writes a JSON string in ASCII.
func quote(b *strings.Builder, payload []byte) {
	b.WriteByte('"')
	for i := 0; i < len(payload); {
		c := payload[i]
		if c >= ' ' && c <= '~' && c != '"' && c != '\\' {
			b.WriteByte(c)
			i++
			continue
		}
		r, n := utf8.DecodeRune(payload[i:])
		escape(b, r)
		i += n
	}
	b.WriteByte('"')
}

var short = map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`}

func escape(b *strings.Builder, r rune) {
	if s, ok := short[r]; ok {
		b.WriteString(s)
		return
	}
	if r > 0xffff {
		r -= 0x10000
		fmt.Fprintf(b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		return
	}
	fmt.Fprintf(b, `\u%04x`, r)
}
