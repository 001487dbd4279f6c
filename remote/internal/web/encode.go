package web

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/wakebell/wakebell/internal/text"
)

// encode returns the JSON of an answer: numbers, truth values and lists always, texts,
// objects, instants and durations unless they are absent.
func (r *route) encode(m proto.Message) []byte { return r.message(nil, m.ProtoReflect()) }

// message appends the JSON of a message. Large texts are copied once: an answer takes
// little more memory than its bytes.
func (r *route) message(out []byte, m protoreflect.Message) []byte {
	out = append(out, '{')
	first := true
	name := func(name string) {
		if !first {
			out = append(out, ',')
		}
		first = false
		out = append(append(append(out, '"'), name...), `":`...)
	}
	body := bodyField(m.Descriptor())
	for i := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(i)
		switch {
		case !r.shown(f):
		case f == body:
			kind := m.Descriptor().Fields().ByName("content_type")
			contentType := ""
			if kind != nil {
				contentType = m.Get(kind).String()
			}
			data := m.Get(f).Bytes()
			field, form := bodyForm(contentType, kind != nil, data)
			name(field)
			out = appendBytes(out, data, form)
		case f.IsList():
			name(string(f.Name()))
			out = r.list(out, m.Get(f).List(), f)
		case f.IsMap():
			if m.Has(f) {
				name(string(f.Name()))
				out = mapJSON(out, m.Get(f).Map())
			}
		case m.Has(f) || isNumber(f):
			field := string(f.Name())
			if f.Kind() == protoreflect.BytesKind && !utf8.Valid(m.Get(f).Bytes()) {
				field += "_base64"
			}
			name(field)
			out = r.value(out, f, m.Get(f))
		}
	}
	return append(out, '}')
}

func isNumber(f protoreflect.FieldDescriptor) bool {
	switch f.Kind() {
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind, protoreflect.EnumKind:
		return false
	}
	return f.ContainingOneof() == nil
}

func (r *route) list(out []byte, l protoreflect.List, f protoreflect.FieldDescriptor) []byte {
	out = append(out, '[')
	for i := range l.Len() {
		if i > 0 {
			out = append(out, ',')
		}
		out = r.value(out, f, l.Get(i))
	}
	return append(out, ']')
}

func mapJSON(out []byte, m protoreflect.Map) []byte {
	var keys []string
	m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k.String())
		return true
	})
	slices.Sort(keys)
	out = append(out, '{')
	for i, k := range keys {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendText(out, text.Valid(k)), ':')
		out = appendText(out, text.Valid(m.Get(protoreflect.ValueOfString(k).MapKey()).String()))
	}
	return append(out, '}')
}

// value appends the JSON of a value.
func (r *route) value(out []byte, f protoreflect.FieldDescriptor, v protoreflect.Value) []byte {
	switch f.Kind() {
	case protoreflect.StringKind:
		return appendText(out, text.Valid(v.String()))
	case protoreflect.BytesKind:
		return appendBytes(out, v.Bytes(), formOf(f, v.Bytes()))
	case protoreflect.EnumKind:
		value := f.Enum().Values().ByNumber(v.Enum())
		if value == nil || value.Number() == 0 {
			return append(out, "null"...)
		}
		return appendText(out, enumName(value))
	case protoreflect.MessageKind:
		switch m := v.Message().Interface().(type) {
		case *durationpb.Duration:
			return appendText(out, m.AsDuration().String())
		case *timestamppb.Timestamp:
			return appendText(out, m.AsTime().UTC().Format(time.RFC3339Nano))
		}
		return r.message(out, v.Message())
	case protoreflect.BoolKind:
		return strconv.AppendBool(out, v.Bool())
	case protoreflect.DoubleKind: // finite
		return strconv.AppendFloat(out, v.Float(), 'g', -1, 64)
	case protoreflect.Int32Kind, protoreflect.Int64Kind:
		return strconv.AppendInt(out, v.Int(), 10)
	}
	return strconv.AppendUint(out, v.Uint(), 10)
}

// form is how bytes are written in JSON.
type form int

const (
	asBase64 form = iota
	asText
	asJSON
	asNull
)

func formOf(f protoreflect.FieldDescriptor, data []byte) form {
	switch {
	case isJSON(f) && json.Valid(data):
		return asJSON
	case utf8.Valid(data):
		return asText
	}
	return asBase64
}

func appendBytes(out, data []byte, as form) []byte {
	switch as {
	case asJSON:
		return append(out, data...)
	case asText:
		return appendText(out, data)
	case asNull:
		return append(out, "null"...)
	}
	out = append(out, '"')
	out = base64.StdEncoding.AppendEncode(out, data)
	return append(out, '"')
}

// appendText appends a text in UTF-8 as JSON.
func appendText[T string | []byte](out []byte, said T) []byte {
	const digits = "0123456789abcdef"
	out = append(out, '"')
	for i := range len(said) {
		switch c := said[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c == '\n':
			out = append(out, `\n`...)
		case c < ' ':
			out = append(out, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}

// enumPrefix is the prefix of the names of an enum's values, as OUTCOME_.
func enumPrefix(e protoreflect.EnumDescriptor) string {
	return strings.TrimSuffix(string(e.Values().ByNumber(0).Name()), "UNSPECIFIED")
}

func enumName(v protoreflect.EnumValueDescriptor) string {
	e, _ := v.Parent().(protoreflect.EnumDescriptor)
	return strings.ToLower(strings.TrimPrefix(string(v.Name()), enumPrefix(e)))
}

func enumNames(e protoreflect.EnumDescriptor) (all []string) {
	for i := range e.Values().Len() {
		if v := e.Values().Get(i); v.Number() != 0 {
			all = append(all, enumName(v))
		}
	}
	return all
}

// maxName is how many bytes of a field's name an error shows.
const maxName = 64

func clip(name string) string { return text.Clip(name, maxName) }
