package envelope

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// decodeLegacy decodes the two JSON forms that older peers wrote. ok is false if
// payload is neither. The error says why a payload with the key "b" cannot be
// decoded.
func decodeLegacy(payload []byte) (e Envelope, ok bool, err error) {
	trimmed := bytes.TrimLeft(payload, " \t\r\n")
	if len(trimmed) == 0 || trimmed[0] != '{' || !utf8.Valid(payload) {
		return Envelope{}, false, nil
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(payload, &object) != nil {
		return Envelope{}, false, nil
	}
	if b, found := object["b"]; found && payload[0] == '{' {
		e, err = decodeHex(b, object["ct"])
		return e, err == nil, err
	}
	if data, found := object["data"]; found {
		e, ok = decodeData(data, object["headers"])
		return e, ok, nil
	}
	return Envelope{}, false, nil
}

func decodeHex(b, contentType json.RawMessage) (Envelope, error) {
	text, ok := stringOf(b)
	if !ok {
		return Envelope{}, errors.New(`"b" of a legacy payload is not a string`)
	}
	body, err := hex.DecodeString(text)
	if err != nil {
		return Envelope{}, fmt.Errorf(`"b" of a legacy payload: %w`, err)
	}
	ct, _ := stringOf(contentType)
	return Envelope{ContentType: ct, Body: body}, nil
}

// decodeData decodes {"data", "headers"}. As in the peer, data must be a string
// and headers are optional.
func decodeData(data, headers json.RawMessage) (Envelope, bool) {
	body, ok := stringOf(data)
	if !ok {
		return Envelope{}, false
	}
	var c collector
	if len(headers) == 0 || string(headers) == "null" {
		return c.done([]byte(body)), true
	}
	// A map would lose the order.
	dec := json.NewDecoder(bytes.NewReader(headers))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return Envelope{}, false
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return Envelope{}, false
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return Envelope{}, false
		}
		value, isString := stringOf(raw)
		if !isString {
			value = string(raw) // such as a number: its JSON, unchanged
		}
		c.add(key.(string), value, 1)
	}
	return c.done([]byte(body)), true
}

// stringOf decodes a JSON string. ok is false if raw is anything else.
func stringOf(raw json.RawMessage) (s string, ok bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}
