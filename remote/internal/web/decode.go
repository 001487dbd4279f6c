package web

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

// fieldError says which field of a request is wrong.
type fieldError struct{ field, text string }

func (e *fieldError) Error() string {
	if e.field == "" {
		return e.text
	}
	return e.field + ": " + e.text
}

func wrong(field, format string, args ...any) error {
	return &fieldError{field, fmt.Sprintf(format, args...)}
}

// decoder reads the JSON of a message. It refuses unknown and repeated fields, null and
// other types, and more than wire.MaxParts values: JSON takes more memory than bytes.
type decoder struct {
	*json.Decoder
	route *route
	parts int
}

// decode fills m from a body.
func (r *route) decode(body []byte, m protoreflect.Message) error {
	if !utf8.Valid(body) {
		return wrong("", "the body is not UTF-8")
	}
	var whole json.RawMessage
	if err := json.Unmarshal(body, &whole); err != nil { // checks the syntax to the end
		if at, ok := errors.AsType[*json.SyntaxError](err); ok {
			return wrong("", "the body is not JSON: %v, at byte %d", at, at.Offset)
		}
		return wrong("", "the body is not JSON: %v", err)
	}
	d := &decoder{Decoder: json.NewDecoder(bytes.NewReader(body)), route: r}
	d.UseNumber()
	first, err := d.Token()
	if err != nil || first != json.Delim('{') {
		return wrong("", "want a JSON object")
	}
	return d.object(m, "")
}

func (d *decoder) count() error {
	if d.parts++; d.parts > wire.MaxParts {
		return wrong("", "more than %d values", wire.MaxParts)
	}
	return nil
}

// object reads the rest of an object, after its brace.
func (d *decoder) object(m protoreflect.Message, at string) error {
	seen, b := map[string]bool{}, content{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return wrong(at, "%v", err)
		}
		name, _ := token.(string)
		field := join(at, clip(name))
		if err := d.count(); err != nil {
			return err
		}
		if seen[name] {
			return wrong(field, "it is there twice")
		}
		seen[name] = true
		if f := bodyField(m.Descriptor()); f != nil && (name == "body" || name == "body_base64") {
			if err := b.read(d, name, field); err != nil {
				return err
			}
			continue
		}
		f := m.Descriptor().Fields().ByTextName(name)
		if f == nil || !d.route.shown(f) || string(f.Name()) != name {
			return wrong(field, "there is no such field; want one of %s", strings.Join(d.route.names(m.Descriptor()), ", "))
		}
		if o := f.ContainingOneof(); o != nil && m.WhichOneof(o) != nil {
			return wrong(field, "it excludes %s", m.WhichOneof(o).Name())
		}
		if err := d.field(m, f, field); err != nil {
			return err
		}
	}
	_, err := d.Token() // the brace
	if err != nil {
		return wrong(at, "%v", err)
	}
	return b.store(m, at)
}

func (d *decoder) field(m protoreflect.Message, f protoreflect.FieldDescriptor, at string) error {
	switch {
	case f.IsMap():
		return d.mapOf(m.Mutable(f).Map(), at)
	case f.IsList():
		return d.list(m.Mutable(f).List(), f, at)
	}
	v, err := d.value(f, m.NewField(f), at)
	if err == nil {
		m.Set(f, v)
	}
	return err
}

func (d *decoder) list(into protoreflect.List, f protoreflect.FieldDescriptor, at string) error {
	if token, err := d.Token(); err != nil || token != json.Delim('[') {
		return wrong(at, "want a list")
	}
	for i := 0; d.More(); i++ {
		if err := d.count(); err != nil {
			return err
		}
		v, err := d.value(f, into.NewElement(), at+"["+strconv.Itoa(i)+"]")
		if err != nil {
			return err
		}
		into.Append(v)
	}
	_, err := d.Token()
	return err
}

// mapOf reads a map of texts: the messages have no others.
func (d *decoder) mapOf(into protoreflect.Map, at string) error {
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return wrong(at, "want an object of texts")
	}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return wrong(at, "%v", err)
		}
		if err := d.count(); err != nil {
			return err
		}
		name, _ := token.(string)
		key := protoreflect.ValueOfString(name).MapKey()
		if into.Has(key) {
			return wrong(join(at, clip(name)), "it is there twice")
		}
		value, err := d.text(join(at, clip(name)))
		if err != nil {
			return err
		}
		into.Set(key, protoreflect.ValueOfString(value))
	}
	_, err := d.Token()
	return err
}

// value reads one value of a field.
func (d *decoder) value(f protoreflect.FieldDescriptor, empty protoreflect.Value, at string) (protoreflect.Value, error) {
	switch f.Kind() {
	case protoreflect.MessageKind:
		switch f.Message().FullName() {
		case durationName, timestampName:
			text, err := d.text(at)
			if err != nil {
				return empty, err
			}
			return parsed(f, text, at)
		}
		if token, err := d.Token(); err != nil || token != json.Delim('{') {
			return empty, wrong(at, "want an object")
		}
		return empty, d.object(empty.Message(), at)
	case protoreflect.BytesKind:
		if isJSON(f) {
			var raw json.RawMessage
			err := d.Decode(&raw)
			return protoreflect.ValueOfBytes(raw), err
		}
	case protoreflect.BoolKind:
		token, err := d.Token()
		b, ok := token.(bool)
		if err != nil || !ok {
			return empty, wrong(at, "want true or false")
		}
		return protoreflect.ValueOfBool(b), nil
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.Int64Kind, protoreflect.Int32Kind, protoreflect.DoubleKind:
		token, err := d.Token()
		n, ok := token.(json.Number)
		if err != nil || !ok {
			return empty, wrong(at, "want a number")
		}
		return parsed(f, n.String(), at)
	}
	text, err := d.text(at)
	if err != nil {
		return empty, err
	}
	return parsed(f, text, at)
}

func (d *decoder) text(at string) (string, error) {
	token, err := d.Token()
	text, ok := token.(string)
	if err != nil || !ok {
		return "", wrong(at, "want a text")
	}
	return text, nil
}

const (
	durationName  = protoreflect.FullName("google.protobuf.Duration")
	timestampName = protoreflect.FullName("google.protobuf.Timestamp")
)

// parsed returns the value of a field that is written as a text, as in a query.
func parsed(f protoreflect.FieldDescriptor, text, at string) (v protoreflect.Value, err error) {
	switch f.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(text), nil
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(text)), nil
	case protoreflect.BoolKind:
		if text != "true" && text != "false" {
			return v, wrong(at, "want true or false")
		}
		return protoreflect.ValueOfBool(text == "true"), nil
	case protoreflect.EnumKind:
		if value := f.Enum().Values().ByName(protoreflect.Name(enumPrefix(f.Enum()) + strings.ToUpper(text))); value != nil && value.Number() != 0 && text == strings.ToLower(text) {
			return protoreflect.ValueOfEnum(value.Number()), nil
		}
		return v, wrong(at, "%s, want one of %s", argument.Quote(text), strings.Join(enumNames(f.Enum()), ", "))
	case protoreflect.MessageKind:
		return parsedMessage(f, text, at)
	}
	return number(f.Kind(), text, at)
}

func parsedMessage(f protoreflect.FieldDescriptor, text, at string) (v protoreflect.Value, err error) {
	if f.Message().FullName() == durationName {
		d, err := parseDuration(text)
		if err != nil {
			return v, wrong(at, "%v", err)
		}
		return protoreflect.ValueOfMessage(durationpb.New(d).ProtoReflect()), nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return v, wrong(at, `want an instant such as "2026-07-01T09:00:00Z"`)
	}
	return protoreflect.ValueOfMessage(timestamppb.New(t).ProtoReflect()), nil
}

func number(kind protoreflect.Kind, text, at string) (v protoreflect.Value, err error) {
	high := uint64(math.MaxUint64)
	switch kind {
	case protoreflect.DoubleKind:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return v, wrong(at, "want a number")
		}
		return protoreflect.ValueOfFloat64(f), nil
	case protoreflect.Int64Kind:
		high = math.MaxInt64
	case protoreflect.Uint32Kind:
		high = math.MaxUint32
	case protoreflect.Int32Kind:
		high = math.MaxInt32
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > high {
		return v, wrong(at, "want a whole number from 0 to %d", high)
	}
	switch kind {
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(int64(n)), nil
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(n)), nil
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(n)), nil
	}
	return protoreflect.ValueOfUint64(n), nil
}

// names are the fields of a message in its JSON.
func (r *route) names(of protoreflect.MessageDescriptor) (all []string) {
	for i := range of.Fields().Len() {
		f := of.Fields().Get(i)
		if !r.shown(f) {
			continue
		}
		all = append(all, string(f.Name()))
		if f == bodyField(of) {
			all = append(all, "body_base64")
		}
	}
	slices.Sort(all)
	return all
}

func decodeBase64(text string) ([]byte, error) { return base64.StdEncoding.Strict().DecodeString(text) }

func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}
