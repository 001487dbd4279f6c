// Package config reads and writes configuration files of nodes. A field of a file is a
// flag of the command, with the flag's name and its values.
package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/files"
)

// sizeLimit bounds the size of a file, in bytes.
const sizeLimit = 4 << 20

// File is a configuration file.
type File struct {
	Name           string
	Fields         []Field
	Topics, Queues []Section
}

// Section is what a file has about a topic or a queue.
type Section struct {
	Name   string
	Line   int
	Fields []Field
}

// Field is a field of a file. It has several values if it is a list.
type Field struct {
	Name   string
	Line   int
	Values []string
}

// Error is an error in a file.
type Error struct {
	File  string
	Line  int    // from 1; 0: of the whole file
	Field string // with the names of its section; empty: none
	Text  string
}

func (e *Error) Error() string {
	text := e.File
	if e.Line > 0 {
		text += ":" + strconv.Itoa(e.Line)
	}
	if e.Field != "" {
		text += ": " + e.Field
	}
	return text + ": " + e.Text
}

// Join joins errors in the order of their lines, each once: a field outside of
// sections may be wrong for several of them.
func Join(errs []error) error {
	slices.SortStableFunc(errs, func(a, b error) int {
		return cmp.Or(cmp.Compare(lineOf(a), lineOf(b)), cmp.Compare(a.Error(), b.Error()))
	})
	errs = slices.CompactFunc(errs, func(a, b error) bool { return a.Error() == b.Error() })
	return errors.Join(errs...)
}

func lineOf(err error) int {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Line
	}
	return 0
}

// Read reads a file. Its errors are joined Errors, or those of the file system.
func Read(name string) (*File, error) {
	text, err := files.Read(name, sizeLimit)
	if err != nil {
		return nil, err
	}
	return Parse(name, text)
}

// Parse parses the text of a file with this name.
func Parse(name string, text []byte) (*File, error) {
	p := &parser{file: &File{Name: name}}
	if len(text) > sizeLimit {
		p.fail(0, "", "larger than %d bytes", sizeLimit)
		return nil, errors.Join(p.errs...)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var first, second yaml.Node
	switch err := decoder.Decode(&first); {
	case errors.Is(err, io.EOF):
		return p.file, nil
	case err != nil:
		p.syntax(err)
	default:
		p.document(first.Content[0])
		if err := decoder.Decode(&second); err == nil {
			p.fail(second.Line, "", "a second document, want one")
		} else if !errors.Is(err, io.EOF) {
			p.syntax(err)
		}
	}
	return p.file, errors.Join(p.errs...)
}

type parser struct {
	file *File
	errs []error
}

func (p *parser) fail(line int, field, format string, args ...any) {
	p.errs = append(p.errs, &Error{p.file.Name, line, field, fmt.Sprintf(format, args...)})
}

// syntaxError matches the errors of the YAML parser.
var syntaxError = regexp.MustCompile(`^yaml: (?:line (\d+): )?((?s).*)$`)

func (p *parser) syntax(err error) {
	line, text := 0, err.Error()
	if parts := syntaxError.FindStringSubmatch(text); parts != nil {
		line, _ = strconv.Atoi(parts[1]) // 0 without a line
		text = parts[2]
	}
	p.fail(line, "", "%s", text)
}

func (p *parser) document(root *yaml.Node) {
	if isNull(root) {
		return
	}
	p.mapping(root, "", func(key, value *yaml.Node) {
		switch key.Value {
		case "topics":
			p.file.Topics = p.sections(value, key.Value)
		case "queues":
			p.file.Queues = p.sections(value, key.Value)
		default:
			p.field(&p.file.Fields, key, value, "")
		}
	})
}

// mapping calls each with the entries of a mapping.
func (p *parser) mapping(node *yaml.Node, path string, each func(key, value *yaml.Node)) {
	if node.Kind != yaml.MappingNode {
		p.fail(node.Line, path, "%s, want fields such as health: 127.0.0.1:8080", kind(node))
		return
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		switch line, twice := lines[key.Value]; {
		case key.Kind != yaml.ScalarNode:
			p.fail(key.Line, path, "%s as a name, want text", kind(key))
		case twice:
			p.fail(key.Line, join(path, key.Value), "already on line %d", line)
		default:
			lines[key.Value] = key.Line
			each(key, value)
		}
	}
}

// sections returns the sections of topics or queues: a mapping from names to fields,
// or a list of names.
func (p *parser) sections(node *yaml.Node, path string) (all []Section) {
	switch {
	case isNull(node):
		return nil
	case node.Kind == yaml.SequenceNode:
		for _, name := range node.Content {
			if name.Kind != yaml.ScalarNode {
				p.fail(name.Line, path, "%s, want a name", kind(name))
				continue
			}
			all = append(all, Section{Name: name.Value, Line: name.Line})
		}
		return all
	}
	p.mapping(node, path, func(key, value *yaml.Node) {
		section := Section{Name: key.Value, Line: key.Line}
		if !isNull(value) {
			within := join(path, key.Value)
			p.mapping(value, within, func(key, value *yaml.Node) { p.field(&section.Fields, key, value, within) })
		}
		all = append(all, section)
	})
	return all
}

func (p *parser) field(fields *[]Field, key, value *yaml.Node, path string) {
	field := Field{Name: key.Value, Line: key.Line}
	values := []*yaml.Node{value}
	if value.Kind == yaml.SequenceNode {
		values = value.Content
	}
	for _, v := range values {
		if v.Kind != yaml.ScalarNode || isNull(v) {
			p.fail(v.Line, join(path, field.Name), "%s, want a value", kind(v))
			return
		}
		field.Values = append(field.Values, v.Value)
	}
	*fields = append(*fields, field)
}

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.Tag == "!!null" }

// kind names what a node is, for errors.
func kind(node *yaml.Node) string {
	switch {
	case node.Kind == yaml.MappingNode:
		return "fields"
	case node.Kind == yaml.SequenceNode:
		return "a list"
	case node.Kind == yaml.AliasNode:
		return "an alias"
	case isNull(node):
		return "nothing"
	default:
		return strconv.Quote(node.Value)
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
