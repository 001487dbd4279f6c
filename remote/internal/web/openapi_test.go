package web

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"
)

var update = flag.Bool("update", false, "write openapi.json")

// TestOpenAPIDocumentIsCurrent makes the document from the table of routes, the messages
// and the comments in the .proto files.
func TestOpenAPIDocumentIsCurrent(t *testing.T) {
	t.Parallel()
	d := &document{t: t, comments: commentsOf(t), schemas: map[string]any{}}
	var want bytes.Buffer
	encoder := json.NewEncoder(&want)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	require.NoError(t, encoder.Encode(d.whole()))
	if *update {
		require.NoError(t, os.WriteFile("openapi.json", want.Bytes(), 0o600))
		return
	}
	require.Equal(t, want.String(), string(openAPI), "go test ./remote/internal/web -run OpenAPI -update")
}

// document makes an OpenAPI document.
type document struct {
	t        *testing.T
	comments map[string]string // by the full name of a message, field, enum or value
	schemas  map[string]any
}

type object = map[string]any

func (d *document) whole() object {
	paths := map[string]object{}
	for _, r := range routes {
		if paths[r.pattern] == nil {
			paths[r.pattern] = object{}
		}
		paths[r.pattern][strings.ToLower(r.method)] = d.operation(r)
	}
	d.schemas["Problem"] = object{
		"type": "object", "description": "What went wrong (RFC 9457).", "properties": object{
			"type": object{"type": "string"}, "title": object{"type": "string"}, "status": object{"type": "integer"},
			"detail": object{"type": "string"}, "code": object{"type": "string"}, "field": object{"type": "string"},
		},
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Wakebell over HTTP", "version": "1",
			"description": "Durations are texts such as 72h or PT72H, instants are RFC 3339. A body is JSON, a text if its content type is text, or base64 in body_base64.",
		},
		"security": []any{object{"token": []any{}}, object{}},
		"paths":    paths,
		"components": object{
			"schemas":         d.schemas,
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}},
		},
	}
}

func (d *document) operation(r *route) object {
	parameters := []any{}
	for _, s := range r.segments {
		if s.variable != "" {
			parameters = append(parameters, object{"name": s.variable, "in": "path", "required": true, "schema": object{"type": "string"}})
		}
	}
	in := r.in.ProtoReflect().Descriptor()
	for i := range in.Fields().Len() {
		f := in.Fields().Get(i)
		if f.Name() == "timeout" || (!r.hasBody() && r.shown(f) && !f.IsList() && !f.IsMap()) {
			parameters = append(parameters, object{"name": string(f.Name()), "in": "query", "description": d.comments[string(f.FullName())], "schema": d.value(r, f)})
		}
	}
	if r.keyed() {
		parameters = append(parameters, object{
			"name": "Idempotency-Key", "in": "header", "schema": object{"type": "string", "minLength": 1, "maxLength": 256},
			"description": "A repeated request with the same key is not carried out again: for 24 hours, of messages to a queue for a minute.",
		})
	}
	status := "200"
	if r.out.ProtoReflect().Descriptor().Name() == "SettleResponse" {
		status = "202"
	}
	o := object{
		"summary": r.summary, "parameters": parameters,
		"responses": object{
			status:    object{"description": "Done.", "content": object{jsonType: object{"schema": d.ref(r, r.out.ProtoReflect().Descriptor())}}},
			"default": object{"description": "A problem.", "content": object{"application/problem+json": object{"schema": object{"$ref": "#/components/schemas/Problem"}}}},
		},
	}
	if r.hasBody() {
		o["requestBody"] = object{"content": object{jsonType: object{"schema": d.ref(r, in)}}}
	}
	return o
}

// ref defines the schema of a message, unless that was done before.
func (d *document) ref(r *route, of protoreflect.MessageDescriptor) object {
	name := string(of.Name())
	ref := object{"$ref": "#/components/schemas/" + name}
	if _, ok := d.schemas[name]; ok {
		return ref
	}
	properties := object{}
	d.schemas[name] = object{"type": "object", "description": d.comments[string(of.FullName())], "additionalProperties": false, "properties": properties}
	for i := range of.Fields().Len() {
		f := of.Fields().Get(i)
		if !r.shown(f) {
			continue
		}
		properties[string(f.Name())] = d.field(r, f)
		if f == bodyField(of) {
			properties["body_base64"] = object{"type": "string", "contentEncoding": "base64", "description": "The body, if it is neither JSON nor a text."}
		}
	}
	return ref
}

func (d *document) field(r *route, f protoreflect.FieldDescriptor) object {
	var s object
	switch {
	case f.IsMap():
		s = object{"type": "object", "additionalProperties": object{"type": "string"}}
	case f.IsList():
		s = object{"type": "array", "items": d.value(r, f)}
	default:
		s = d.value(r, f)
	}
	if text := d.comments[string(f.FullName())]; text != "" {
		s["description"] = text
	}
	return s
}

func (d *document) value(r *route, f protoreflect.FieldDescriptor) object {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return object{"type": "boolean"}
	case protoreflect.EnumKind:
		return object{"type": "string", "enum": enumNames(f.Enum())}
	case protoreflect.MessageKind:
		switch f.Message().FullName() {
		case durationName:
			return object{"type": "string", "examples": []any{"72h", "PT72H"}}
		case timestampName:
			return object{"type": "string", "format": "date-time"}
		}
		return d.ref(r, f.Message())
	case protoreflect.BytesKind:
		if f == bodyField(f.ContainingMessage()) || isJSON(f) {
			return object{}
		}
		return object{"type": "string"}
	case protoreflect.StringKind:
		return object{"type": "string"}
	case protoreflect.DoubleKind:
		return object{"type": "number"}
	}
	return object{"type": "integer", "minimum": 0}
}

var (
	opening     = regexp.MustCompile(`^\s*(message|enum|oneof) (\w+) \{`)
	declaration = regexp.MustCompile(`^\s*(?:repeated |map<.*> |[\w.]+ )*(\w+) = \d+;`)
)

// commentsOf reads the comments of the .proto files. Descriptors in a program have none.
func commentsOf(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	files, err := filepath.Glob("../../../messages/*.proto")
	require.NoError(t, err)
	for _, file := range append(files, "../httpapi/http.proto") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		pkg := "wakebell.v1"
		if strings.HasSuffix(file, "http.proto") {
			pkg = "wakebell.http.v1"
		}
		var comment, within []string
		for line := range strings.Lines(string(text)) {
			trimmed := strings.TrimSpace(line)
			said := strings.Join(comment, " ")
			if rest, ok := strings.CutPrefix(trimmed, "//"); ok {
				comment = append(comment, strings.TrimSpace(rest))
				continue
			}
			comment = nil
			switch m := opening.FindStringSubmatch(line); {
			case m != nil && strings.HasSuffix(trimmed, "}"):
				all[pkg+"."+m[2]] = said
			case m != nil && m[1] == "oneof":
				within = append(within, within[len(within)-1]) // its fields are those of the message
			case m != nil:
				within = append(within, pkg+"."+m[2])
				all[pkg+"."+m[2]] = said
			case trimmed == "}" && len(within) > 0:
				within = within[:len(within)-1]
			default:
				if m := declaration.FindStringSubmatch(line); m != nil && len(within) > 0 {
					all[within[len(within)-1]+"."+m[1]] = said
				}
			}
		}
	}
	return all
}
