// Package stored encodes and decodes the messages of redis-message-queue: a
// prefix, and JSON with an id and a payload. Redis finds a message by its stored
// bytes, so they are never decoded and encoded again.
package stored

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Prefix begins an envelope. A value without it is a payload without an id.
const Prefix = "\x1eRMQ1:"

// ErrMalformed is wrapped by errors about a value that has the prefix but is not
// an envelope.
var ErrMalformed = errors.New("malformed stored message")

// Decode decodes a stored message. The id is empty if it has no envelope. Errors
// wrap [ErrMalformed].
func Decode(value string) (id string, payload []byte, err error) {
	body, ok := strings.CutPrefix(value, Prefix)
	if !ok {
		return "", []byte(value), nil
	}
	if id, text, ok := plain(body); ok {
		return id, []byte(text), nil
	}
	var e struct {
		ID      *string `json:"id"`
		Payload *string `json:"payload"`
		Hex     *string `json:"payload_hex"`
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		return "", nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	switch {
	case e.ID == nil:
		return "", nil, fmt.Errorf("%w: no id", ErrMalformed)
	case (e.Payload == nil) == (e.Hex == nil):
		return "", nil, fmt.Errorf("%w: want a payload or a payload_hex", ErrMalformed)
	case e.Payload != nil:
		return *e.ID, []byte(*e.Payload), nil
	}
	payload, err = hex.DecodeString(*e.Hex)
	if err != nil {
		return "", nil, fmt.Errorf("%w: payload_hex: %w", ErrMalformed, err)
	}
	return *e.ID, payload, nil
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
// in ASCII, or payload_hex if the payload is not UTF-8.
func Rest(payload []byte) string {
	if !utf8.Valid(payload) {
		return `"payload_hex":"` + hex.EncodeToString(payload) + `"}`
	}
	var b strings.Builder
	b.Grow(len(payload) + 16)
	b.WriteString(`"payload":"`)
	for i := 0; i < len(payload); {
		c := payload[i]
		if c >= ' ' && c <= '~' && c != '"' && c != '\\' {
			b.WriteByte(c)
			i++
			continue
		}
		r, n := utf8.DecodeRune(payload[i:])
		escape(&b, r)
		i += n
	}
	b.WriteString(`"}`)
	return b.String()
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
