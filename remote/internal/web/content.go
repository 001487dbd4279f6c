package web

import (
	"encoding/json"
	"mime"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

// A body is bytes with a content type. In JSON it is body, a value as JSON or a text, or
// body_base64, as in the output of the commands.

const jsonType = "application/json"

// bodyField is the field of a message that is a body; nil: it has none.
func bodyField(of protoreflect.MessageDescriptor) protoreflect.FieldDescriptor {
	if f := of.Fields().ByName("body"); f != nil && f.Kind() == protoreflect.BytesKind {
		return f
	}
	return nil
}

// isJSON reports whether bytes are JSON, as the arguments of Celery tasks are.
func isJSON(f protoreflect.FieldDescriptor) bool {
	return f.Kind() == protoreflect.BytesKind && f.ContainingMessage().Name() == "CeleryMessage"
}

// content is the body of a message that is read.
type content struct {
	value   json.RawMessage // nil: absent
	bytes   []byte
	encoded bool // bytes are there
}

func (b *content) read(d *decoder, name, at string) error {
	if name == "body" {
		if err := d.Decode(&b.value); err != nil {
			return wrong(at, "%v", err)
		}
		return nil
	}
	encoded, err := d.text(at)
	if err != nil {
		return err
	}
	b.encoded = true
	if b.bytes, err = decodeBase64(encoded); err != nil {
		return wrong(at, "it is not base64: %v", err)
	}
	return nil
}

// store sets the body of a message that has been read, and its content type.
func (b *content) store(m protoreflect.Message, at string) error {
	f := bodyField(m.Descriptor())
	if f == nil {
		return nil
	}
	kind := m.Descriptor().Fields().ByName("content_type")
	declared := ""
	if kind != nil {
		declared = m.Get(kind).String()
	}
	switch {
	case b.encoded && b.value != nil:
		return wrong(join(at, "body_base64"), "it excludes body")
	case b.encoded:
		m.Set(f, protoreflect.ValueOfBytes(b.bytes))
	case b.value == nil, string(b.value) == "null" && declared == "":
	case isText(declared):
		var plain string
		if err := json.Unmarshal(b.value, &plain); err != nil {
			return wrong(join(at, "body"), "want a text, because content_type is %s", text.Clip(declared, wire.MaxShown))
		}
		m.Set(f, protoreflect.ValueOfBytes([]byte(plain)))
	case declared == "" || isJSONType(declared):
		m.Set(f, protoreflect.ValueOfBytes(b.value))
		if kind != nil && declared == "" {
			m.Set(kind, protoreflect.ValueOfString(jsonType))
		}
	default:
		return wrong(join(at, "body"), "want body_base64, because content_type is %s", text.Clip(declared, wire.MaxShown))
	}
	return nil
}

// bodyForm returns the name of a body in an answer, and how it is written.
func bodyForm(contentType string, typed bool, body []byte) (name string, as form) {
	switch {
	case (!typed || isJSONType(contentType)) && utf8.Valid(body) && json.Valid(body):
		return "body", asJSON
	case typed && isText(contentType) && utf8.Valid(body):
		return "body", asText
	case len(body) == 0:
		return "body", asNull
	}
	return "body_base64", asBase64
}

func media(contentType string) string {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		kind, _, _ = strings.Cut(contentType, ";")
	}
	return kind
}

func isText(contentType string) bool { return strings.HasPrefix(media(contentType), "text/") }

func isJSONType(contentType string) bool {
	kind := media(contentType)
	return kind == jsonType || strings.HasSuffix(kind, "+json")
}
