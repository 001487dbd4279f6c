package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
)

var (
	errNotUTF8   = errors.New("the text is not UTF-8")
	errNotFinite = errors.New("NaN and the infinities cannot be written as JSON")
	errNotJSON   = errors.New("the raw message is not JSON")
)

// Encode returns the body of v and its content type, empty for none. The body
// of a []byte is v itself, not a copy. Errors wrap ErrBody.
func (c Codec[T]) Encode(v T) (body []byte, contentType string, err error) {
	body, contentType, err = c.plan.encode(reflect.ValueOf(&v).Elem())
	if err != nil {
		return nil, "", fmt.Errorf("%w: encode %s: %w", ErrBody, c.plan.whole, err)
	}
	return body, contentType, nil
}

// encode writes v, an addressable value of the plan's type.
func (p plan) encode(v reflect.Value) (body []byte, contentType string, err error) {
	if p.pointer {
		if v.IsNil() {
			return nil, "", nil
		}
		v = v.Elem()
	}
	switch p.form {
	case formText:
		text := v.String()
		if !utf8.ValidString(text) {
			return nil, "", errNotUTF8
		}
		return []byte(text), ContentTypeText, nil
	case formBytes:
		return v.Bytes(), "", nil
	case formProto:
		body, err = proto.Marshal(v.Addr().Interface().(proto.Message))
		return body, ContentTypeProto, err
	case formRawJSON:
		if v.IsNil() {
			return nil, "", nil
		}
		if !json.Valid(v.Bytes()) {
			return nil, "", errNotJSON
		}
		return v.Bytes(), ContentTypeJSON, nil
	case formFloat:
		body, err = appendFloat(nil, v.Float(), v.Type().Bits())
		return body, ContentTypeJSON, err
	case formDynamic:
		return encodeDynamic(v)
	default:
		body, err = encodeJSON(v.Addr().Interface())
		return body, ContentTypeJSON, err
	}
}

// encodeDynamic encodes the value of the interface v by its dynamic type.
func encodeDynamic(v reflect.Value) (body []byte, contentType string, err error) {
	if v.IsNil() {
		return nil, "", nil
	}
	held := v.Elem()
	addressable := reflect.New(held.Type()).Elem()
	addressable.Set(held)
	return planFor(held.Type()).encode(addressable)
}

// encodeJSON encodes the value that pointer points to. It takes a pointer so that
// methods with pointer receivers are used.
func encodeJSON(pointer any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(pointer); err != nil {
		if unsupported, ok := errors.AsType[*json.UnsupportedValueError](err); ok && isNotFinite(unsupported.Value) {
			return nil, errNotFinite
		}
		return nil, err
	}
	return rawSeparators(bytes.TrimSuffix(buf.Bytes(), []byte("\n"))), nil
}

func isNotFinite(v reflect.Value) bool {
	return v.CanFloat() && (math.IsNaN(v.Float()) || math.IsInf(v.Float(), 0))
}

// rawSeparators replaces, in place, the escapes of U+2028 and U+2029, which
// encoding/json always writes and the peer does not.
func rawSeparators(text []byte) []byte {
	if !bytes.Contains(text, []byte(`\u202`)) {
		return text
	}
	out := text[:0]
	for len(text) > 0 {
		switch {
		case bytes.HasPrefix(text, []byte(`\u2028`)):
			out, text = append(out, "\u2028"...), text[6:]
		case bytes.HasPrefix(text, []byte(`\u2029`)):
			out, text = append(out, "\u2029"...), text[6:]
		case text[0] == '\\':
			out, text = append(out, text[:2]...), text[2:] // so that \\u2028 stays
		default:
			out, text = append(out, text[0]), text[1:]
		}
	}
	return out
}

// appendFloat appends f as the peer writes it: the fewest digits that parse as f,
// always with a point or an exponent, so that Python parses a float.
func appendFloat(dst []byte, f float64, bits int) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, errNotFinite
	}
	if abs := math.Abs(f); abs != 0 && (abs < 1e-5 || abs >= 1e16) {
		return append(dst, shortExponent(strconv.FormatFloat(f, 'e', -1, bits))...), nil
	}
	text := strconv.FormatFloat(f, 'f', -1, bits)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return append(dst, text...), nil
}

// shortExponent removes the leading zero of an exponent: 1e-07 becomes 1e-7.
func shortExponent(text string) string {
	i := strings.IndexByte(text, 'e') + len("e+")
	if text[i] == '0' {
		return text[:i] + text[i+1:]
	}
	return text
}
