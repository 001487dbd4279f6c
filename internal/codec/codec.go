// Package codec encodes values as timer bodies and decodes them. The format of
// the bodies is shared with the Python peer:
//
//	Go type                                    content type             body
//	string, or a type of that kind             text/plain               UTF-8
//	[]byte, or a type of that kind             none                     unchanged
//	nil: an interface, a pointer, RawMessage   none                     empty (Python's None)
//	proto.Message                              application/x-protobuf   proto.Marshal
//	json.RawMessage                            application/json         unchanged, validated
//	anything else                              application/json         compact JSON
//
// A type that implements json.Marshaler or encoding.TextMarshaler, such as
// net.IP, is JSON of any kind. A pointer is encoded as the value it points
// to. A Codec[any] encodes each value by its dynamic type. A nil map or slice
// that is not bytes is the JSON null, as in encoding/json; it is not None.
//
// # JSON
//
// JSON is compact, with raw UTF-8, without HTML escaping and without a trailing
// newline. The bytes equal those that the peer writes for the same value, except
// that
//
//   - keys of a Go map are sorted; the peer keeps the order of insertion (a
//     struct with the fields in that order gives the peer's bytes);
//   - a float inside a map, slice or struct is written by encoding/json: 3.0
//     is 3, which Python reads as an int, and 1e20 has all its digits. A value
//     that is itself a float is written as the peer does (3.0, 1e+20);
//   - []byte inside a value is base64; the peer writes it as text;
//   - time.Duration is a number of nanoseconds; the peer writes ISO 8601;
//   - bytes in a string that are not UTF-8 become \ufffd;
//   - NaN and the infinities are an error; the peer writes NaN and Infinity,
//     which neither it nor this package can read.
package codec

import (
	"encoding"
	"encoding/json"
	"errors"
	"reflect"

	"google.golang.org/protobuf/proto"
)

// The content types that this package writes.
const (
	ContentTypeText  = "text/plain"
	ContentTypeJSON  = "application/json"
	ContentTypeProto = "application/x-protobuf"
)

// ErrBody is wrapped by all errors of this package: a value cannot be encoded, or
// a body cannot be decoded as the type. A retry cannot help.
var ErrBody = errors.New("body does not fit")

// ErrUnreadable is wrapped by the error for a body that is not of the type of its
// topic or queue.
var ErrUnreadable = errors.New("body cannot be read")

// Codec encodes and decodes values of T. It is created by For, is immutable, and
// may be used concurrently.
type Codec[T any] struct{ plan plan }

// For returns the codec of T. Call it once per type, not per value.
func For[T any]() Codec[T] {
	return Codec[T]{plan: planFor(reflect.TypeFor[T]())}
}

// PayloadType returns the content type with which Decode reads a body that travels
// without one: text/plain for strings, because text is not JSON even where it looks
// like it, else empty.
func (c Codec[T]) PayloadType() string {
	if c.plan.form == formText && !c.plan.pointer {
		return ContentTypeText
	}
	return ""
}

// form is the encoding of a type.
type form uint8

const (
	formJSON form = iota
	formText
	formBytes
	formProto
	formRawJSON
	formFloat
	formDynamic // an interface: by the dynamic type of the value
)

// plan describes how a type is encoded.
type plan struct {
	whole   reflect.Type // T
	element reflect.Type // T, or what T points to
	form    form         // of element
	pointer bool         // T is *element
}

var (
	protoMessage = reflect.TypeFor[proto.Message]()
	rawMessage   = reflect.TypeFor[json.RawMessage]()
	marshalers   = []reflect.Type{
		reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler](),
		reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
	}
)

func planFor(t reflect.Type) plan {
	p := plan{whole: t, element: t}
	if t.Kind() == reflect.Pointer {
		p.pointer, p.element = true, t.Elem()
	}
	p.form = formOf(p.element)
	if p.pointer && p.form == formDynamic {
		// encoding/json detects an interface that points to itself; following it
		// here would not end.
		p.form = formJSON
	}
	return p
}

func formOf(t reflect.Type) form {
	self := reflect.PointerTo(t)
	switch {
	case t.Kind() == reflect.Interface:
		return formDynamic
	case self.Implements(protoMessage):
		return formProto
	case t == rawMessage:
		return formRawJSON
	}
	for _, m := range marshalers {
		if self.Implements(m) {
			return formJSON
		}
	}
	switch t.Kind() {
	case reflect.String:
		return formText
	case reflect.Float32, reflect.Float64:
		return formFloat
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return formBytes
		}
	}
	return formJSON
}
