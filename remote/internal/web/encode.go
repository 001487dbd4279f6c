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

func (r *route) message(out []byte, m protoreflect.Message) []byte {
	out = append(out, '{')
	first := true
	add := func(name string, value []byte) {
		if !first {
			out = append(out, ',')
		}
		first = false
		out = append(append(append(append(out, '"'), name...), `":`...), value...)
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
			add(bodyJSON(contentType, kind != nil, m.Get(f).Bytes()))
		case f.IsList():
			add(string(f.Name()), r.list(m.Get(f).List(), f))
		case f.IsMap():
			if m.Has(f) {
				add(string(f.Name()), mapJSON(m.Get(f).Map()))
			}
		case m.Has(f) || isNumber(f):
			name := string(f.Name())
			if f.Kind() == protoreflect.BytesKind && !utf8.Valid(m.Get(f).Bytes()) {
				name += "_base64"
			}
			if value := r.value(f, m.Get(f)); value != nil {
				add(name, value)
			}
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

func (r *route) list(l protoreflect.List, f protoreflect.FieldDescriptor) []byte {
	out := []byte{'['}
	for i := range l.Len() {
		if i > 0 {
			out = append(out, ',')
		}
		value := r.value(f, l.Get(i))
		if value == nil {
			value = []byte("null")
		}
		out = append(out, value...)
	}
	return append(out, ']')
}

func mapJSON(m protoreflect.Map) []byte {
	var keys []string
	m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k.String())
		return true
	})
	slices.Sort(keys)
	out := []byte{'{'}
	for i, k := range keys {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, quoted(k)...), ':'), quoted(m.Get(protoreflect.ValueOfString(k).MapKey()).String())...)
	}
	return append(out, '}')
}

// value returns the JSON of a value; nil: it says nothing.
func (r *route) value(f protoreflect.FieldDescriptor, v protoreflect.Value) []byte {
	switch f.Kind() {
	case protoreflect.StringKind:
		return quoted(v.String())
	case protoreflect.BytesKind:
		return bytesJSON(f, v.Bytes())
	case protoreflect.EnumKind:
		value := f.Enum().Values().ByNumber(v.Enum())
		if value == nil || value.Number() == 0 {
			return nil
		}
		return quoted(enumName(value))
	case protoreflect.MessageKind:
		switch m := v.Message().Interface().(type) {
		case *durationpb.Duration:
			return quoted(m.AsDuration().String())
		case *timestamppb.Timestamp:
			return quoted(m.AsTime().UTC().Format(time.RFC3339Nano))
		}
		return r.message(nil, v.Message())
	case protoreflect.BoolKind:
		return strconv.AppendBool(nil, v.Bool())
	case protoreflect.Int32Kind, protoreflect.Int64Kind:
		return strconv.AppendInt(nil, v.Int(), 10)
	}
	return strconv.AppendUint(nil, v.Uint(), 10)
}

func bytesJSON(f protoreflect.FieldDescriptor, data []byte) []byte {
	switch {
	case isJSON(f) && json.Valid(data):
		return data
	case utf8.Valid(data):
		return quoted(string(data))
	}
	return quoted(encodeBase64(data))
}

func quoted(s string) []byte {
	out, err := json.Marshal(s)
	if err != nil { // a text never fails
		return []byte(`""`)
	}
	return out
}

func encodeBase64(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

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
