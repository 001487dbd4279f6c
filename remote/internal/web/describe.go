package web

import (
	"bytes"
	_ "embed" // openapi.json
	"encoding/json"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// openAPI describes the API. A test makes it from the table of routes and the messages.
//
//go:embed openapi.json
var openAPI []byte

// The description is the same for everyone, and has no secrets: it needs no credentials.
const (
	openAPIPath = "/openapi.json"
	docsPath    = "/docs"
)

// describe answers requests for the description of the API. It returns false for others.
func (h *handler) describe(w http.ResponseWriter, r *http.Request) bool {
	path := r.URL.EscapedPath()
	if path != openAPIPath && path != docsPath {
		return false
	}
	h.sending(w)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		p := newProblem("method_not_allowed", "want GET or HEAD")
		p.allow = []string{http.MethodGet, http.MethodHead}
		p.write(w)
		return true
	}
	kind, body := "application/vnd.oai.openapi+json;version=3.1", openAPI
	if path == docsPath {
		kind, body = "text/html; charset=utf-8", docsPage()
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(body) // the caller has gone
	return true
}

// description is what the page shows of an OpenAPI document.
type description struct {
	Info struct {
		Title, Description string
	}
	Paths      map[string]map[string]operation
	Components struct {
		Schemas map[string]schema
	}
}

type operation struct {
	Summary    string
	Parameters []struct {
		Name, In, Description string
		Required              bool
	}
	RequestBody struct {
		Content map[string]struct{ Schema schema }
	}
	Responses map[string]struct {
		Content map[string]struct{ Schema schema }
	}
}

type schema struct {
	Ref         string `json:"$ref"`
	Type        any
	Description string
	Items       *schema
	Enum        []string
	Properties  map[string]schema
}

// Name is the name of a type, with that of its items.
func (s schema) Name() string {
	switch {
	case s.Ref != "":
		return s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
	case s.Items != nil:
		return "list of " + s.Items.Name()
	case len(s.Enum) > 0:
		return strings.Join(s.Enum, ", ")
	}
	if name, ok := s.Type.(string); ok {
		return name
	}
	return "any JSON"
}

// request and answer are the types of an operation.
func (o operation) Request() string { return o.RequestBody.Content[jsonType].Schema.Name() }

// HasRequest reports whether the operation takes a body.
func (o operation) HasRequest() bool { return len(o.RequestBody.Content) > 0 }

// Answer is the type of what an operation answers.
func (o operation) Answer() string {
	for _, code := range []string{"200", "202"} {
		if r, ok := o.Responses[code]; ok {
			return r.Content[jsonType].Schema.Name()
		}
	}
	return ""
}

// problemRow is a line of the table of problems.
type problemRow struct {
	Code, Title string
	Status      int
}

var page = template.Must(template.New("docs").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{{.D.Info.Title}}</title></head>
<body><h1>{{.D.Info.Title}}</h1><p>{{.D.Info.Description}}</p><p><a href="/openapi.json">OpenAPI 3.1</a></p>
<h2>Requests</h2>
{{range $path, $methods := .D.Paths}}{{range $method, $o := $methods}}<h3><code>{{$method}} {{$path}}</code></h3>
<p>{{$o.Summary}}.{{if $o.HasRequest}} Body: <a href="#{{$o.Request}}">{{$o.Request}}</a>.{{end}} Answer: <a href="#{{$o.Answer}}">{{$o.Answer}}</a>.</p>
<ul>{{range $o.Parameters}}<li><code>{{.Name}}</code> ({{.In}}{{if .Required}}, required{{end}}) {{.Description}}</li>{{end}}</ul>
{{end}}{{end}}<h2>Types</h2>
{{range $name, $s := .D.Components.Schemas}}<h3 id="{{$name}}">{{$name}}</h3><p>{{$s.Description}}</p>
<ul>{{range $field, $f := $s.Properties}}<li><code>{{$field}}</code> ({{$f.Name}}) {{$f.Description}}</li>{{end}}</ul>
{{end}}<h2>Problems</h2>
<table><thead><tr><th>code</th><th>status</th><th>meaning</th></tr></thead><tbody>
{{range .Problems}}<tr id="{{.Code}}"><td><code>{{.Code}}</code></td><td>{{.Status}}</td><td>{{.Title}}</td></tr>
{{end}}</tbody></table></body></html>
`))

// docsPage is the page that shows the description.
var docsPage = sync.OnceValue(func() []byte {
	var d description
	if err := json.Unmarshal(openAPI, &d); err != nil { // a test parses it
		return []byte(err.Error())
	}
	upper := map[string]map[string]operation{}
	for path, methods := range d.Paths {
		upper[path] = map[string]operation{}
		for method, o := range methods {
			upper[path][strings.ToUpper(method)] = o
		}
	}
	d.Paths = upper
	var problems []problemRow
	for _, code := range slices.Sorted(maps.Keys(kinds)) {
		problems = append(problems, problemRow{code, kinds[code].title, kinds[code].status})
	}
	var out bytes.Buffer
	if err := page.Execute(&out, map[string]any{"D": d, "Problems": problems}); err != nil {
		return []byte(err.Error())
	}
	return out.Bytes()
})
