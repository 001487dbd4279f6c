package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// media is the class of a content type.
type media uint8

const (
	mediaNone media = iota
	mediaText
	mediaJSON
	mediaProto
	mediaOther
)

func mediaOf(contentType string) media {
	name, _, _ := strings.Cut(contentType, ";")
	name = strings.ToLower(strings.TrimSpace(name))
	switch {
	case name == "":
		return mediaNone
	case strings.HasPrefix(name, ContentTypeJSON): // a prefix, as in the peer
		return mediaJSON
	case strings.HasPrefix(name, "text/"):
		return mediaText
	case name == ContentTypeProto:
		return mediaProto
	default:
		return mediaOther
	}
}

// Decode returns the value of a body with the given content type, empty for
// none. Parameters (; charset=utf-8) are ignored. By T:
//
//   - []byte: body itself, not a copy, for every content type
//   - string: text/plain and any other text; application/json that is a
//     string; without a content type a JSON string, else the body if it is UTF-8
//   - any: as the peer decodes. text/plain is a string, application/json is
//     decoded by encoding/json; without a content type it is JSON if it is valid,
//     else []byte, and nil if it is empty
//   - proto.Message: application/x-protobuf; application/json by protojson;
//     without a content type a JSON object by protojson, else protobuf. An
//     empty body is an empty message, never nil
//   - json.RawMessage: any JSON, a copy
//   - anything else: application/json, or JSON without a content type
//
// An empty body without a content type is Python's None or its b"": a nil
// pointer or RawMessage, an empty string, struct{}{}, and an error for types
// that have no such value. Errors wrap ErrBody and say what was expected and
// what was found.
func (c Codec[T]) Decode(body []byte, contentType string) (T, error) {
	var v T
	if err := c.plan.decode(reflect.ValueOf(&v).Elem(), body, contentType); err != nil {
		var zero T
		return zero, fmt.Errorf("%w: decode %s: %w", ErrBody, c.plan.whole, err)
	}
	return v, nil
}

// decode fills v, a settable zero value of the plan's type.
func (p plan) decode(v reflect.Value, body []byte, contentType string) error {
	found := mediaOf(contentType)
	if p.pointer {
		if len(body) == 0 && found == mediaNone && p.form != formProto {
			return nil // None
		}
		v.Set(reflect.New(p.element))
		v = v.Elem()
	}
	switch p.form {
	case formText:
		return decodeText(v, body, found, contentType)
	case formBytes:
		v.SetBytes(body)
		return nil
	case formProto:
		return decodeProto(v.Addr().Interface().(proto.Message), body, found, contentType)
	case formDynamic:
		return decodeDynamic(v, body, contentType)
	case formRawJSON:
		if len(body) == 0 && found == mediaNone {
			return nil
		}
	}
	return decodeJSON(v, body, found, contentType)
}

func decodeText(v reflect.Value, body []byte, found media, contentType string) error {
	switch found {
	case mediaJSON:
		return decodeJSON(v, body, found, contentType)
	case mediaNone:
		if len(body) > 0 && body[0] == '"' && json.Unmarshal(body, v.Addr().Interface()) == nil {
			return nil
		}
	case mediaText:
	default:
		return mismatch(ContentTypeText, body, contentType, nil)
	}
	if !utf8.Valid(body) {
		return mismatch("UTF-8 text", body, contentType, errNotUTF8)
	}
	v.SetString(string(body))
	return nil
}

func decodeJSON(v reflect.Value, body []byte, found media, contentType string) error {
	if found != mediaNone && found != mediaJSON {
		return mismatch(ContentTypeJSON, body, contentType, nil)
	}
	if len(body) == 0 && found == mediaNone && v.Kind() == reflect.Struct && v.NumField() == 0 {
		return nil // a timer without content
	}
	if !utf8.Valid(body) {
		return mismatch("JSON", body, contentType, errNotUTF8)
	}
	if err := json.Unmarshal(body, v.Addr().Interface()); err != nil {
		return mismatch("JSON", body, contentType, err)
	}
	return nil
}

func decodeProto(m proto.Message, body []byte, found media, contentType string) error {
	asJSON := found == mediaJSON
	switch found {
	case mediaProto, mediaJSON:
	case mediaNone:
		// An encoded message practically never looks like a JSON object: a brace
		// would open a group, which is deprecated.
		asJSON = bytes.HasPrefix(body, []byte("{")) && json.Valid(body)
	default:
		return mismatch(ContentTypeProto, body, contentType, nil)
	}
	if asJSON {
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(body, m); err != nil {
			return mismatch("protobuf as JSON", body, contentType, err)
		}
		return nil
	}
	if err := proto.Unmarshal(body, m); err != nil {
		return mismatch("protobuf", body, contentType, err)
	}
	return nil
}

var errNoConcreteType = errors.New("an interface with methods has no concrete type to decode into; use a concrete type or the empty interface")

// decodeDynamic chooses the type of the interface value v by the body, as the peer
// does.
func decodeDynamic(v reflect.Value, body []byte, contentType string) error {
	if v.NumMethod() > 0 {
		return errNoConcreteType
	}
	var value any
	switch mediaOf(contentType) {
	case mediaJSON:
		return decodeJSON(v, body, mediaJSON, contentType)
	case mediaText:
		if !utf8.Valid(body) {
			return mismatch("UTF-8 text", body, contentType, errNotUTF8)
		}
		value = string(body)
	case mediaNone:
		if len(body) == 0 {
			return nil
		}
		if !utf8.Valid(body) || json.Unmarshal(body, &value) != nil {
			value = body
		}
		if value == nil {
			return nil
		}
	default:
		value = body
	}
	v.Set(reflect.ValueOf(value))
	return nil
}

// mismatch returns an error with what was expected and what was found. It has the
// size of the body but not its bytes, which may be confidential.
func mismatch(expected string, body []byte, contentType string, cause error) error {
	found := "no content type"
	if contentType != "" {
		found = fmt.Sprintf("%q", contentType)
	}
	if cause == nil {
		return fmt.Errorf("expected %s, found %s with %d bytes", expected, found, len(body))
	}
	return fmt.Errorf("expected %s, found %s with %d bytes: %w", expected, found, len(body), cause)
}
